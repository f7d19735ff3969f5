"""A coordinator in place of the agent's: a server whose answers the test sets, and which never "
"waits."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sar_agent.events.answers import encode_answer
from sar_agent.events.munge import Munge
from sar_lab.live.process import wait_for


class Coordinator:
    """Answers `subscribe` with `phase`, `update` and `lease`, and every other message with ok. With
    `away` it closes connections without an answer. `heard` has all messages, also unanswered
    ones."""

    def __init__(self, path: Path, munge: Path, lease: float = 30.0) -> None:
        self.path, self.lease = path, lease
        self.phase, self.update, self.away = "idle", 0, False
        self.heard: list[dict[str, Any]] = []
        self._decode = Munge(str(munge)).decode
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(5)
                line = client.makefile("rb").readline()
                uid, payload = self._decode(line.strip())
                message = json.loads(payload)
                self.heard.append(message | {"uid": uid})
                if not self.away:
                    client.sendall(encode_answer(self._answer(message)))

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["event"] != "subscribe":
            return {"ok": True}
        state = {"lease": self.lease, "phase": self.phase, "update": self.update}
        return {"ok": True, **state, "generation": 3}

    def events(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        wanted = fields | {"event": event}
        return [one for one in self.heard if wanted.items() <= one.items()]

    def wait(self, event: str, seconds: float = 20, count: int = 1, **fields: Any) -> None:
        wait_for(lambda: len(self.events(event, **fields)) >= count, seconds, f"{event} {fields}")

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextlib.contextmanager
def coordinator(path: Path, munge: Path, lease: float = 30.0) -> Iterator[Coordinator]:
    made = Coordinator(path, munge, lease)
    try:
        yield made
    finally:
        made.close()


def now_ns() -> int:
    """A number for an update, as the agent takes it."""
    return time.time_ns()
