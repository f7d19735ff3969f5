"""Reads the message counters of a running agent from its Unix socket."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from sar_agent.events.answers import LONGEST_ANSWER, decode_answer
from sar_agent.events.dispatch import STATUS


def read_counters(path: Path | None) -> dict[str, Any] | None:
    """`{"events": {…}, "refused": {…}, "waiting": 0, "update": {…}}`; None if no agent answers
    within a second."""
    if path is None:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            stream.settimeout(1)
            stream.connect(str(path))
            stream.sendall(STATUS + b"\n")
            with stream.makefile("rb") as reader:
                answer = decode_answer(reader.read(LONGEST_ANSWER))["status"]
        return {name: answer[name] for name in ("events", "refused", "waiting", "update")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
