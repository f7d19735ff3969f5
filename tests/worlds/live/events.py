"""A server in place of the agent's: it accepts the messages of PROTOCOL.md, decodes them with munge
and stores them."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_agent.events.answers import encode_answer
from sar_lab.live.process import wait_until

OK: dict[str, Any] = {"ok": True}


@dataclass(frozen=True)
class Event:
    """One message: its sender according to munge, its contents, and its arrival (Unix seconds)."""

    uid: int
    payload: dict[str, Any]
    came: float


def unmunge(credential: bytes, munge_socket: Path) -> tuple[int, dict[str, Any]]:
    """The sender's uid and the payload. Raises CalledProcessError if munge does not believe it."""
    done = subprocess.run(
        ["unmunge", f"--socket={munge_socket}"], input=credential, capture_output=True, check=True
    )
    head, _, payload = done.stdout.partition(b"\n\n")
    uid = re.search(rb"^UID:\s+\S+ \((\d+)\)$", head, re.M)
    assert uid is not None, head
    return int(uid[1]), json.loads(payload)


class Agent:
    """`answer` is sent to every client: an object, verbatim text, or None for no answer."""

    def __init__(self, munge_socket: Path, unix: Path | None = None) -> None:
        self.events: list[Event] = []
        self.cut_off = 0
        self._open = 0
        self._counting = threading.Lock()
        self.answer: dict[str, Any] | str | None = OK
        self.slow = 0.0
        """Seconds before it answers."""
        self._munge = munge_socket
        self._listener = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self._listener.bind(str(unix) if unix else ("127.0.0.1", 0))
        self._listener.listen(512)
        self.address = str(unix) if unix else f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # so that the thread in accept() wakes up
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def of(self, job: str, event: str | None = None) -> list[Event]:
        """The result of a job, as root: each message once, whichever user sent it."""
        return [
            e
            for e in self.events
            if e.payload["job"] == job and event in (None, e.payload["event"])
        ]

    def heard(self, job: str, event: str, least: int = 1, seconds: float = 10) -> list[Event]:
        """Wait for at least so many."""
        assert wait_until(lambda: len(self.of(job, event)) >= least, seconds), self.events[-20:]
        return self.of(job, event)

    def quiet(self, seconds: float = 10) -> None:
        """Wait until no message is being handled: an answer is sent before its event is stored."""
        assert wait_until(lambda: self._open == 0, seconds), self._open

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                with self._counting:
                    self._open += 1
                threading.Thread(target=self._serve, args=[stream], daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        try:
            self._hear(stream)
        finally:
            with self._counting:
                self._open -= 1

    def _hear(self, stream: socket.socket) -> None:
        with stream, suppress(OSError, subprocess.CalledProcessError):
            came = time.time()
            line = stream.makefile("rb").readline(8192)
            if not line.endswith(b"\n"):  # its deadline came first
                self.cut_off += 1
                return
            answer = self.answer
            if answer is not None:
                time.sleep(self.slow)
                text = answer.encode() if isinstance(answer, str) else encode_answer(answer)
                with suppress(OSError):  # who tells of an end does not wait for it
                    stream.sendall(text)
            uid, payload = unmunge(line.rstrip(b"\n"), self._munge)
            self.events.append(Event(uid, payload, came))
            if answer is None:
                stream.recv(1)  # until the client has had enough


@contextmanager
def dead() -> Iterator[str]:
    """An address without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def stopped() -> Iterator[str]:
    """A server like a process under SIGSTOP: the kernel accepts connections, no process reads."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4096)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def black_hole() -> Iterator[str]:
    """Packets are dropped: a listener whose queue is full does not answer a SYN."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        time.sleep(0.05)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


FAILURES: dict[str, Callable[[], Any]] = {
    "dead": dead,
    "stopped": stopped,
    "black hole": black_hole,
}
