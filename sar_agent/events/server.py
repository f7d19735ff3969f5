"""Where messages are heard: one TCP port, one Unix socket, one thread for both.

The thread only moves bytes. Lines are judged by a few others, since a stopped munged answers
nobody for seconds. None of them can hold up the agent's loop: it is told by a flag, and everything
between is bounded. What does not fit waits in the kernel's queue, where a client's own deadline
ends it. A client may have left before it is answered (its deadline is 50 ms); its line counts.

Clients that send nothing are cut off after `patience` seconds, sooner where all places are taken.
No origin (an address of the network, a uid of this machine) has more than half of the places and of
the lines that wait, so that one of them does not shut out all others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

from sar_agent.errors import Unavailable
from sar_agent.events.dispatch import Dispatcher
from sar_agent.events.message import CREDENTIAL, LONGEST_LINE, MessageRefused, RefusalReason

log = logging.getLogger(__name__)
BACKLOG = 4096
LONGEST_PATH = 107
"""Bytes of a Unix socket's name."""
PLACES = 400
"""Connections at a time: well below the 1,024 files that a service may open."""
WORK = 2000
"""Lines that wait to be judged."""
WORKERS = 4
"""For lines with a credential; others, as `status`, have one of their own, for a munged that is
stopped holds up these."""
Origin = str | int
"""An address of the network, or a uid of this machine."""
SWITCH = 0.0005
"""Seconds for which one thread may have the interpreter while another wants it."""
CROWDED = 0.1
"""Seconds of silence after which a connection makes place where there is none."""


def listen_tcp(host: str, port: int) -> socket.socket:
    """Raises `Unavailable`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return _listen(listener, (host, port), f"{host}:{port}", "set events.tcp_address to a free one")


def listen_unix(path: Path) -> socket.socket:
    """Everybody may connect: the credential says who speaks. Raises `Unavailable`.

    The socket is made in a folder that is ours alone, given its mode there, and renamed: nobody
    sees it with another mode, nor can put another file in its place between the two, whatever the
    umask.
    """
    remedy = "set events.socket to another path"
    folder = ""
    try:
        if len(os.fsencode(path)) > LONGEST_PATH:  # clients could not name it
            raise OSError(0, "AF_UNIX path too long")
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) and not path.is_socket():
            raise OSError(0, "there is a file that is no socket")
        folder = tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # By a short name: the folder's own may be too long for a socket's.
            short = f"/proc/self/fd/{opened}/s"
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening = _listen(listener, short, str(path), remedy)
            try:
                os.chmod("s", 0o666, dir_fd=opened)
                # Over the one of an agent that is gone: we hold the lock.
                os.replace("s", path, src_dir_fd=opened)
            except OSError:
                listening.close()
                raise
        finally:
            os.close(opened)
    except OSError as error:
        raise _cannot(str(path), error, remedy) from error
    finally:
        if folder:
            with suppress(OSError):
                Path(folder, "s").unlink()
            Path(folder).rmdir()
    return listening


def _listen(
    listener: socket.socket, address: tuple[str, int] | str, name: str, remedy: str
) -> socket.socket:
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot(name, error, remedy) from error
    listener.setblocking(False)
    return listener


def _cannot(name: str, error: OSError, remedy: str) -> Unavailable:
    return Unavailable(f"cannot listen for events on {name} ({error.strerror or error}); {remedy}")


Work = queue.SimpleQueue[tuple["Connection", bytes] | None]


class MessageServer:
    """Listens on `listeners` from `start` until `stop`, and closes them."""

    def __init__(
        self,
        hearing: Dispatcher,
        listeners: list[socket.socket],
        *,
        patience: float = 0.5,
        places: int = PLACES,
    ) -> None:
        self.hearing, self.patience, self.places = hearing, patience, places
        self._listeners = listeners
        self._callers: dict[Connection, None] = {}
        """Open connections, the oldest first."""
        self._of_origin: Counter[Origin] = Counter()
        """How many of them."""
        self._lines: Counter[Origin] = Counter()
        """That wait to be judged; of the moving thread only."""
        self._work: Work = queue.SimpleQueue()
        self._plain: Work = queue.SimpleQueue()
        """Lines without a credential."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Returns at once."""
        # Moving bytes is many short calls, each of which gives the interpreter away: where the
        # agent's loop computes, a call would wait 5 ms to have it back.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        ready = threading.Event()
        # As daemons: one that waits for munged must not keep the agent from ending.
        judges = [
            threading.Thread(target=self._judge, args=[work], daemon=True)
            for work in (*[self._work] * WORKERS, self._plain)
        ]
        mover = threading.Thread(target=self._run, args=[ready], daemon=True)
        self._threads = [mover, *judges]
        for thread in self._threads:
            thread.start()
        ready.wait(10)

    def stop(self) -> None:
        """Takes no more; what was heard before is judged still."""
        if self._loop and self._end:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._end.set)
        for _ in range(WORKERS):
            self._work.put(None)
        self._plain.put(None)
        for thread in self._threads:
            thread.join(1)

    def submit(self, caller: Connection, line: bytes) -> None:
        """Judge a line; the caller is answered later."""
        work = self._work if line.startswith(CREDENTIAL) else self._plain
        if work.qsize() >= WORK:
            full = MessageRefused(RefusalReason.FULL, "too many messages wait to be judged")
            caller.answer(self.hearing.refuse(full, caller.way))
        elif self._lines[caller.origin] >= WORK // 2 and not self._is_trusted(caller):
            many = MessageRefused(
                RefusalReason.TOO_MANY, f"too many messages of {caller.origin} wait to be judged"
            )
            caller.answer(self.hearing.refuse(many, caller.way))
        else:
            self._lines[caller.origin] += 1
            work.put((caller, line))

    def _judged(self, caller: Connection, answer: bytes) -> None:
        self._lines[caller.origin] -= 1
        if not self._lines[caller.origin]:
            del self._lines[caller.origin]
        caller.answer(answer)

    def _is_trusted(self, caller: Connection) -> bool:
        return caller.peer is not None and caller.peer in self.hearing.trusted

    def _judge(self, work: Work) -> None:
        while one := work.get():
            caller, line = one
            try:
                answer = self.hearing.line(line, caller.way, caller.peer)
            except Exception as error:
                self.hearing.tally.unexpected.caught("door", error)
                answer = b'{"ok":false,"error":"an error of the agent; see its log"}\n'
            if self._loop:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._judged, caller, answer)

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        except Exception:  # the agent's loop goes on and polls
            log.exception("events are not heard any more; this is a bug of sar-agent")
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        tasks = [asyncio.create_task(self._accept(one)) for one in self._listeners]
        tasks.append(asyncio.create_task(self._sweep()))
        ready.set()
        ended = asyncio.create_task(self._end.wait())
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()  # a bug's exception, for the log
            task.cancel()
        for listener in self._listeners:
            listener.close()
        for caller in list(self._callers):
            caller.cut()

    async def _accept(self, listener: socket.socket) -> None:
        way = "unix" if listener.family == socket.AF_UNIX else "tcp"
        loop = asyncio.get_running_loop()
        while True:
            while len(self._callers) >= self.places and not self._make_place():
                await asyncio.sleep(0.01)
            try:
                stream, address = await loop.sock_accept(listener)
                peer = _peer(stream) if way == "unix" else None
                origin = address[0] if way == "tcp" else -1 if peer is None else peer
                caller = Connection(self, way, origin, peer)
                self._make_room(caller)
                await loop.connect_accepted_socket(partial(_same, caller), stream)
            except OSError as error:  # no more files, or it has left already
                log.debug("accept: %s", error)
                await asyncio.sleep(0.05)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(0.1, self.patience))
            self._cut_silent(self.patience)

    def _make_place(self) -> bool:
        return self._cut_silent(min(CROWDED, self.patience), most=1, spare=True)

    def _make_room(self, new: Connection) -> None:
        """An origin that has half of the places gives up its oldest for a new one."""
        if self._of_origin[new.origin] < max(1, self.places // 2) or self._is_trusted(new):
            return
        for one in self._callers:
            if one.origin == new.origin and one.silent:
                many = f"{new.origin} has {self.places // 2} connections already"
                self.hearing.refuse(MessageRefused(RefusalReason.TOO_MANY, many), one.way)
                one.cut()
                return

    def _cut_silent(self, silence: float, most: int = PLACES, *, spare: bool = False) -> bool:
        """Cut off callers that came that long ago and have not sent their line; `spare` those of
        whom the kernel says that they are root or SlurmUser."""
        until = time.monotonic() - silence
        old = [one for one in self._callers if one.came <= until and one.silent]
        if spare:
            old = [one for one in old if not self._is_trusted(one)]
        old = old[:most]
        for caller in old:
            slow = MessageRefused(RefusalReason.SLOW, f"no whole line within {silence:g} s")
            self.hearing.refuse(slow, caller.way)
            caller.cut()
        return bool(old)

    def enter(self, caller: Connection) -> None:
        """A connection is there."""
        if caller not in self._callers:
            self._callers[caller] = None
            self._of_origin[caller.origin] += 1

    def leave(self, caller: Connection) -> None:
        """It is gone."""
        if caller in self._callers:
            del self._callers[caller]
            self._of_origin[caller.origin] -= 1
            if not self._of_origin[caller.origin]:
                del self._of_origin[caller.origin]


def _same(caller: Connection) -> Connection:
    return caller


def _peer(stream: socket.socket) -> int | None:
    """The uid at the other end of a Unix socket, as the kernel has it."""
    try:
        about = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    return int(struct.unpack("iII", about)[1])


class Connection(asyncio.Protocol):
    """One connection: one line, one answer."""

    def __init__(self, door: MessageServer, way: str, origin: Origin, peer: int | None) -> None:
        self.door, self.way = door, way
        self.origin, self.peer = origin, peer
        self.came = time.monotonic()
        self.silent = True
        self._line = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's."""
        self._transport = cast(asyncio.Transport, transport)
        self.door.enter(self)

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio's."""
        self.door.leave(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """asyncio's."""
        if not self.silent:
            return  # more than one line
        end = data.find(b"\n")
        self._line += data if end < 0 else data[:end]
        if len(self._line) >= LONGEST_LINE:
            self._refuse(RefusalReason.OVERSIZE, f"a line has less than {LONGEST_LINE} bytes")
        elif end >= 0:
            line, self.silent, self._line = bytes(self._line), False, bytearray()
            if self._transport:
                self._transport.pause_reading()
            self.door.submit(self, line)

    def eof_received(self) -> bool:
        """asyncio's. Who closes after a whole line is judged; who closes in the middle is not."""
        if self.silent and self._line:
            self._refuse(RefusalReason.GARBAGE, "the line has no end")
        return not self.silent  # keep it open for the answer

    def answer(self, answer: bytes) -> None:
        """The last word; somebody who has left does not hear it."""
        self.silent = False
        if self._transport:
            self._transport.write(answer)
            self._transport.close()

    def cut(self) -> None:
        """No answer."""
        self.silent = False
        self.door.leave(self)
        if self._transport:
            self._transport.abort()

    def _refuse(self, why: RefusalReason, sentence: str) -> None:
        self.answer(self.door.hearing.refuse(MessageRefused(why, sentence), self.way))
