"""Clients that mean harm, each a process of a user of its own, with real munge credentials.

    python hostile.py UNIX_SOCKET PORT MUNGE_SOCKET CLIENTS SECONDS

Root starts it; client N runs as uid 20000 + N, kind N modulo the number of kinds. Prints one line
of JSON: messages by kind and how they were answered. The standard library and libmunge only.
"""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401 (a user may not be able to read it later)
import json
import os
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

FIRST_UID = 20000
FIRST_JOB = 70000
"""Client N owns job FIRST_JOB + N, where the queue shows it."""
PAUSE = 0.02


class Client:
    """One of them."""

    def __init__(self, number: int, unix: str, port: int, munge: str) -> None:
        self.job = str(FIRST_JOB + number)
        self.random = random.Random(number)
        self._unix, self._port = unix, port
        self._library = ctypes.CDLL("libmunge.so.2")
        self._library.munge_ctx_create.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.munge_ctx_create())
        self._library.munge_ctx_set(self._context, 8, ctypes.c_char_p(munge.encode()))

    def signed(self, **words: Any) -> bytes:
        said = {"v": 1, "job": self.job, "id": os.urandom(8).hex(), "at": time.time()} | words
        data, found = json.dumps(said, separators=(",", ":")).encode(), ctypes.c_void_p()
        self._library.munge_encode(ctypes.byref(found), self._context, data, len(data))
        return ctypes.string_at(found.value) if found.value else b""

    def dial(self) -> socket.socket:
        if self.random.random() < 0.5:
            stream = socket.socket(socket.AF_UNIX)
            stream.settimeout(2)
            stream.connect(self._unix)
            return stream
        return socket.create_connection(("127.0.0.1", self._port), 2)

    def say(self, line: bytes) -> str:
        """How it was answered."""
        try:
            with self.dial() as stream:
                stream.sendall(line + b"\n")
                answer = stream.makefile("rb").readline()
        except OSError:
            return "nothing"
        return "ok" if answer == b"ok\n" else "refused" if answer else "nothing"

    def any_job(self) -> str:
        return str(self.random.randrange(10**6, 10**9))


def garbage(one: Client) -> Iterator[bytes]:
    while True:
        noise = os.urandom(one.random.randrange(1, 20000)).replace(b"\n", b" ")
        yield noise
        yield b"MUNGE:" + noise
        yield b"MUNGE:" + b"A" * 98304


def half_open(one: Client) -> Iterator[bytes]:
    """Connections that send half a line and stay."""
    while True:
        held = []
        with suppress(OSError):
            for _ in range(50):
                held.append(one.dial())
                held[-1].sendall(b"MUNGE:AwQ")
        time.sleep(0.2)
        for stream in held:
            stream.close()
        yield b"MUNGE:half"


def host_lists(one: Client) -> Iterator[bytes]:
    lists = (",".join(["a[1-1000000]"] * 4000), "n[0-" + "9" * 400 + "]", "a[1-999][1-999][1-999]")
    while True:
        for nodes in lists:
            yield one.signed(event="key", phase="p", traffic="ring", nodes=nodes)
            yield one.signed(event="hint", traffic="ring", nodes=nodes[:3000], job=one.any_job())


def tickets(one: Client) -> Iterator[bytes]:
    pairs = [257 + n % 740 for n in range(15000)]
    while True:
        yield one.signed(event="key", phase="p", pairs=pairs, job=one.any_job())
        yield one.signed(event="key", phase="p", pairs=[-1] * 16000, job=one.any_job())
        yield one.signed(event="key", phase=f"p{one.random.randrange(10**6)}", traffic="ring")


def subscriptions(one: Client) -> Iterator[bytes]:
    while True:
        name = os.urandom(8).hex()
        yield one.signed(event="subscribe", subscriber=name, offset=0, job=one.any_job())
        yield one.signed(event="subscribe", subscriber=name, offset=0)
        yield one.signed(event="ack", subscriber=name, phase="unpath", update=1, offset=1)


def hints(one: Client) -> Iterator[bytes]:
    while True:
        yield one.signed(event="hint", traffic="weight=0.001", job=one.any_job())
        yield one.signed(event="hint", traffic=f"shift:{one.random.randrange(1, 999999)}")
        yield one.signed(event="start", job=one.any_job())


def dear_keys(one: Client) -> Iterator[bytes]:
    """What costs most of what a job's owner may ask for."""
    while True:
        phase = f"p{one.random.randrange(200)}"
        yield one.signed(event="key", phase=phase, traffic="butterfly", tasks="1024(x2)")
        yield one.signed(event="key", phase=phase, traffic="alltoall", tasks="180(x2)")
        yield one.signed(event="key", phase=phase, traffic="butterfly", tasks="262144(x4)")
        if one.random.random() < 0.1:
            yield one.signed(event="key-done")


KINDS: tuple[Callable[[Client], Iterator[bytes]], ...] = (
    garbage, half_open, host_lists, tickets, subscriptions, hints, dear_keys,
)  # fmt: skip


def act(number: int, unix: str, port: int, munge: str, until: float) -> Counter[str]:
    """One client's life."""
    os.setgroups([])
    os.setgid(FIRST_UID + number)
    os.setuid(FIRST_UID + number)
    kind = KINDS[number % len(KINDS)]
    one, heard = Client(number, unix, port, munge), Counter[str]()
    for line in kind(one):
        if time.monotonic() > until:
            break
        heard[f"{kind.__name__} {one.say(line)}"] += 1
        time.sleep(PAUSE)
    return heard


def main(unix: str, port: str, munge: str, clients: str, seconds: str) -> None:
    """All of them."""
    until, ends = time.monotonic() + float(seconds), []
    for number in range(int(clients)):
        read, write = os.pipe()
        if not os.fork():
            os.close(read)
            try:
                found = act(number, unix, int(port), munge, until)
                os.write(write, json.dumps(found).encode())
            finally:
                os._exit(0)
        os.close(write)
        ends.append(read)
    heard = Counter[str]()
    for end in ends:
        with open(end, "rb") as pipe:  # noqa: PTH123 (a descriptor)
            heard.update(json.loads(pipe.read() or b"{}"))
        os.wait()
    print(json.dumps(heard))


if __name__ == "__main__":
    main(*sys.argv[1:6])
