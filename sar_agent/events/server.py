"""Receives messages on a TCP port and a Unix socket.

One thread moves the bytes of all connections. A few worker threads handle the lines, since munged
may take seconds to answer. None of them can delay the agent's loop: it is woken by a flag, and all
queues are bounded. Connections that do not fit wait in the kernel's queue until the client's own
deadline. A client may have disconnected before it is answered (its deadline is 50 ms); its line
counts all the same.

A client that sends no complete line is disconnected after `patience` seconds, or sooner if all
places are taken. No origin (a network address, or a uid of this machine) may have more than half of
the places and of the waiting lines, so that one origin cannot shut out all others.

**Weak spot:** `SWITCH_INTERVAL` is set for the whole process, planning and metrics included: Python
has no other way to let one thread answer while another computes in Python.
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
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

from sar_agent.errors import Unavailable
from sar_agent.events.dispatch import Dispatcher
from sar_agent.events.message import CREDENTIAL, LONGEST_LINE, MessageRefused, RefusalReason
from sar_agent.util.quota import Bound, Quota

log = logging.getLogger(__name__)
BACKLOG = 4096
"""Connections in the kernel's queue."""
LONGEST_PATH = 107
"""Bytes in the path of a Unix socket."""
MOST_CONNECTIONS = 400
"""Connections at a time, well below the 1,024 files that a service may open."""
MOST_LINES = 2000
"""Lines that wait for a worker, at most."""
WORKERS = 4
"""Threads for lines with a credential, which a stopped munged delays. One more thread handles the
other lines, such as `status`."""
Origin = str | int
"""A network address, or a uid of this machine."""
SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread gives the interpreter to another one."""
CROWDED_SECONDS = 0.1
"""Seconds after which a silent connection is closed if all places are taken."""


def listen_tcp(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises `Unavailable`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return _listen(
        listener, (host, port), f"{host}:{port}", "set events.tcp_address to a free address"
    )


def listen_unix(path: Path) -> socket.socket:
    """A listening Unix socket, to which everybody may connect, since the credential identifies the
    sender. Raises `Unavailable`.

    The socket is created in a private folder, given its mode there, and renamed. So, whatever the
    umask, it is never visible with another mode, and nobody can replace it before the mode is set.
    """
    remedy = "set events.socket to another path"
    folder = ""
    try:
        if len(os.fsencode(path)) > LONGEST_PATH:  # clients could not connect to it
            raise OSError(0, "AF_UNIX path too long")
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) and not path.is_socket():
            raise OSError(0, "a file that is not a socket is in its place")
        folder = tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A short path: the path of the folder may be too long for a socket.
            short = f"/proc/self/fd/{opened}/s"
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening = _listen(listener, short, str(path), remedy)
            try:
                os.chmod("s", 0o666, dir_fd=opened)
                # Replaces the socket of an agent that has ended: this process holds the lock.
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


class LineQueue(queue.SimpleQueue[tuple["Connection", bytes] | None]):
    """Lines and the connections they came from; None ends a worker."""

    def __init__(self, trusted: Collection[Origin]) -> None:
        self.room: Quota[Origin] = Quota(MOST_LINES, MOST_LINES // 2, trusted=trusted)
        """Of the lines that wait, or are with a worker."""


class MessageServer:
    """Answers on `listeners` between `start` and `stop`, which closes them."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        listeners: list[socket.socket],
        *,
        patience: float = 0.5,
        places: int = MOST_CONNECTIONS,
    ) -> None:
        self.dispatcher, self.patience = dispatcher, patience
        self._listeners = listeners
        self._connections: dict[Connection, None] = {}
        """Open connections, the oldest first."""
        self._occupied = asyncio.Event()
        """Set while there is an open connection."""
        trusted = dispatcher.trusted
        self._open: Quota[Origin] = Quota(places, max(1, places // 2), trusted=trusted)
        self._signed, self._unsigned = LineQueue(trusted), LineQueue(trusted)
        """Lines with a credential, and without one."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts the threads and returns."""
        # Moving bytes takes many short system calls, each of which releases the interpreter. While
        # the agent's loop computes, each would wait 5 ms to get it back.
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        ready = threading.Event()
        # Daemon threads: one that waits for munged must not keep the agent from ending.
        workers = [
            threading.Thread(target=self._handle_lines, args=[lines], daemon=True)
            for lines in (*[self._signed] * WORKERS, self._unsigned)
        ]
        mover = threading.Thread(target=self._run, args=[ready], daemon=True)
        self._threads = [mover, *workers]
        for thread in self._threads:
            thread.start()
        ready.wait(10)

    def stop(self) -> None:
        """Accepts no more connections; lines that were received are still handled."""
        if self._loop and self._end:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._end.set)
        for _ in range(WORKERS):
            self._signed.put(None)
        self._unsigned.put(None)
        for thread in self._threads:
            thread.join(1)

    def submit(self, connection: Connection, line: bytes) -> None:
        """Queues a line for a worker, which answers it."""
        lines = self._signed if line.startswith(CREDENTIAL) else self._unsigned
        if full := lines.room.try_add(connection.origin):
            why = (RefusalReason.FULL, "too many messages are waiting")
            if full is Bound.ONE:
                many = f"too many messages from {connection.origin} are waiting"
                why = (RefusalReason.TOO_MANY, many)
            connection.answer(self.dispatcher.refuse(MessageRefused(*why), connection.transport))
        else:
            lines.put((connection, line))

    def _handled(self, connection: Connection, lines: LineQueue, answer: bytes) -> None:
        lines.room.give(connection.origin)
        connection.answer(answer)

    def _handle_lines(self, lines: LineQueue) -> None:
        while item := lines.get():
            connection, line = item
            try:
                answer = self.dispatcher.answer(line, connection.transport, connection.peer)
            except Exception as error:
                self.dispatcher.counters.unexpected.caught("server", error)
                answer = b"error internal error of the agent; see its log\n\n"
            if self._loop:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._handled, connection, lines, answer)

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        except Exception:  # the agent continues and polls the queue
            log.exception("events are no longer received; this is a bug of sar-agent")
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        tasks = [asyncio.create_task(self._accept(each)) for each in self._listeners]
        tasks.append(asyncio.create_task(self._sweep()))
        ready.set()
        ended = asyncio.create_task(self._end.wait())
        await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()  # raises the exception of a bug, which is logged
            task.cancel()
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.abort()

    async def _accept(self, listener: socket.socket) -> None:
        transport = "unix" if listener.family == socket.AF_UNIX else "tcp"
        loop = asyncio.get_running_loop()
        while True:
            while len(self._connections) >= self._open.most and not self._free_a_place():
                await asyncio.sleep(0.01)
            try:
                stream, address = await loop.sock_accept(listener)
                peer = _peer(stream) if transport == "unix" else None
                origin = address[0] if transport == "tcp" else -1 if peer is None else peer
                connection = Connection(self, transport, origin, peer)
                self._limit_origin(connection)
                await loop.connect_accepted_socket(partial(_same, connection), stream)
            except OSError as error:  # no file descriptor is left, or the client has disconnected
                log.debug("accept: %s", error)
                await asyncio.sleep(0.05)

    async def _sweep(self) -> None:
        while True:
            await self._occupied.wait()
            await asyncio.sleep(min(0.1, self.patience))
            self._cut_silent(self.patience)

    def _free_a_place(self) -> bool:
        return self._cut_silent(min(CROWDED_SECONDS, self.patience), most=1, spare=True)

    def _limit_origin(self, new: Connection) -> None:
        """Closes the oldest silent connection of an origin that has half of the places."""
        if self._open.lacks(new.origin) is not Bound.ONE:
            return
        for old in self._connections:
            if old.origin == new.origin and old.silent:
                many = f"{new.origin} has {self._open.of_one} connections already"
                self.dispatcher.refuse(MessageRefused(RefusalReason.TOO_MANY, many), old.transport)
                old.abort()
                return

    def _cut_silent(
        self, silence: float, most: int = MOST_CONNECTIONS, *, spare: bool = False
    ) -> bool:
        """Closes up to `most` connections that were opened `silence` seconds ago and have sent no
        complete line; with `spare`, not those of root and SlurmUser, if the kernel tells."""
        until = time.monotonic() - silence
        old = [each for each in self._connections if each.opened <= until and each.silent]
        if spare:
            old = [each for each in old if each.origin not in self._open.trusted]
        old = old[:most]
        for connection in old:
            slow = MessageRefused(RefusalReason.SLOW, f"no complete line within {silence:g} s")
            self.dispatcher.refuse(slow, connection.transport)
            connection.abort()
        return bool(old)

    def opened(self, connection: Connection) -> None:
        """A connection was opened."""
        if connection not in self._connections:
            self._connections[connection] = None
            self._occupied.set()
            self._open.add(connection.origin)

    def closed(self, connection: Connection) -> None:
        """A connection was closed."""
        if connection in self._connections:
            del self._connections[connection]
            if not self._connections:
                self._occupied.clear()
            self._open.give(connection.origin)


def _same(connection: Connection) -> Connection:
    return connection


def _peer(stream: socket.socket) -> int | None:
    """The uid at the other end of a Unix socket, from the kernel."""
    try:
        peer = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    return int(struct.unpack("iII", peer)[1])


class Connection(asyncio.Protocol):
    """A connection, which carries one line and one answer."""

    def __init__(
        self, server: MessageServer, transport: str, origin: Origin, peer: int | None
    ) -> None:
        self.server, self.transport = server, transport
        self.origin, self.peer = origin, peer
        self.opened = time.monotonic()
        self.silent = True
        """Whether no complete line has arrived."""
        self._line = bytearray()
        self._stream: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._stream = cast(asyncio.Transport, transport)
        self.server.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self.server.closed(self)
        self._stream = None

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if not self.silent:
            return  # ignore what follows the line
        end = data.find(b"\n")
        self._line += data if end < 0 else data[:end]
        if len(self._line) >= LONGEST_LINE:
            self._refuse(RefusalReason.OVERSIZE, f"a line must have less than {LONGEST_LINE} bytes")
        elif end >= 0:
            line, self.silent, self._line = bytes(self._line), False, bytearray()
            if self._stream:
                self._stream.pause_reading()
            self.server.submit(self, line)

    def eof_received(self) -> bool:
        """Called by asyncio at the end of the client's data. An incomplete line is refused."""
        if self.silent and self._line:
            self._refuse(RefusalReason.GARBAGE, "the line has no line feed")
        return not self.silent  # keep it open for the answer

    def answer(self, answer: bytes) -> None:
        """Sends the answer, if the client is still connected, and closes the connection."""
        self.silent = False
        if self._stream:
            self._stream.write(answer)
            self._stream.close()

    def abort(self) -> None:
        """Closes the connection without an answer."""
        self.silent = False
        self.server.closed(self)
        if self._stream:
            self._stream.abort()

    def _refuse(self, reason: RefusalReason, sentence: str) -> None:
        refused = MessageRefused(reason, sentence)
        self.answer(self.server.dispatcher.refuse(refused, self.transport))
