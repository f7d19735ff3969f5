"""Messages to the agent with real munge credentials."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from sar_agent.events.answers import decode_answer

NOBODY = 65534


def message(event: str = "start", job: str = "7", **more: Any) -> dict[str, Any]:
    """As PROTOCOL.md has it."""
    given = {"v": 1, "event": event, "job": job, "at": time.time(), "id": os.urandom(8).hex()}
    return given | more


def credential(munge: Path, payload: dict[str, Any] | bytes, uid: int = 0, *options: str) -> bytes:
    """By munge itself, as this user."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(
        ["munge", f"--socket={munge}", *options],
        input=data,
        capture_output=True,
        check=True,
        user=uid,
    )
    return done.stdout.strip()


class Encoder:
    """munge's library, for many a second."""

    def __init__(self, munge: Path) -> None:
        self._library = ctypes.CDLL("libmunge.so.2")
        self._library.munge_ctx_create.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.munge_ctx_create())
        self._library.munge_ctx_set(self._context, 8, ctypes.c_char_p(bytes(munge)))
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]

    def __call__(self, payload: dict[str, Any]) -> bytes:
        data, found = json.dumps(payload).encode(), ctypes.c_void_p()
        error = self._library.munge_encode(
            ctypes.byref(found), self._context, ctypes.c_char_p(data), len(data)
        )
        assert error == 0 and found.value
        try:
            return ctypes.string_at(found.value)
        finally:
            self._free(found)


def dial(address: str | Path | tuple[str, int]) -> socket.socket:
    """A connection to the agent's server."""
    tcp = isinstance(address, tuple)
    stream = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    stream.settimeout(20)
    stream.connect(address if tcp else str(address))
    return stream


def tell(address: str | Path | tuple[str, int], line: bytes) -> dict[str, Any]:
    """One line, and the answer to it."""
    with dial(address) as stream:
        stream.sendall(line + b"\n")
        return decode_answer(stream.makefile("rb").read())
