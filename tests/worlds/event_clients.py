"""Clients of the event server."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from sar_agent.events.answers import decode_answer
from sar_agent.events.authority import Authority
from sar_agent.events.counters import MessageCounters
from sar_agent.events.dispatch import Dispatcher, JobEvents
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import MessageRefused, RefusalReason
from sar_agent.telemetry.metrics import Metrics

ROOT, ALICE, BOB = 0, 1001, 1002


def message(**keys: Any) -> dict[str, Any]:
    start = {"v": 1, "event": "start", "job": "7", "user": ALICE, "at": time.time()}
    return start | {"id": os.urandom(8).hex()} | keys


def signed(uid: int, payload: object) -> bytes:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return f"MUNGE:{uid}:{text}".encode()


def decode(line: bytes) -> tuple[int, bytes]:
    """A munge that believes what the line says."""
    _, uid, payload = line.split(b":", 2)
    if uid == b"away":
        raise MessageRefused(RefusalReason.NO_MUNGE, "munged does not answer")
    return int(uid), payload


class Ear:
    """All but munge."""

    def __init__(self, **keys: Any) -> None:
        self.woken = 0
        self.metrics = Metrics("0", "install", "sar")
        self.counters = MessageCounters(self.metrics)
        self.inbox = Inbox(self.wake, trusted={ROOT}, **keys)
        self.authority = Authority(frozenset({ROOT}))
        self.jobs = JobEvents(self.authority, self.inbox, {"UCX_IB_SL": "1"})
        self.dispatcher = Dispatcher(decode, self.jobs, self.counters)

    def wake(self) -> None:
        self.woken += 1

    def say(self, uid: int, payload: object) -> dict[str, Any]:
        return dict(decode_answer(self.dispatcher.answer(signed(uid, payload), "tcp")))

    def refused(self, why: str) -> float | None:
        return self.metrics.registry.get_sample_value(
            "sar_agent_events_refused_total", {"reason": why}
        )


def dial(path: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(10)
    stream.connect(str(path))
    return stream
