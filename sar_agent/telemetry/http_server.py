"""The HTTP server of metrics and page: a thread for each connection, but only a few at a time.

A connection either waits for its client, which has to send the rest of a request or to read the
answer, or its answer is being made. Where too many wait, a new one takes the place of the one that
has waited longest: a client that is at work needs milliseconds, so however many dawdle, the next
scrape is heard. Of the places where answers are made, some are kept for /metrics. No address has
more than half of either, which is all that an address says on one machine: its users share it.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

from sar_agent.util.quota import Bound, Quota

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MOST_WAITING = 128
"""Connections that wait for their clients."""
MOST_ANSWERING = 8
"""Answers that are being made; further requests wait."""
KEPT_FOR_METRICS = 2
"""Of these, for /metrics."""
REQUEST_SECONDS = 5.0
"""Seconds for a whole request."""
END_SECONDS = 2.0
"""Seconds between two looks whether the server is to end; requests do not wait for them."""
SILENT_SECONDS = 10.0
"""Seconds for a client to read an answer, or to wait until it is made."""


class _Client(io.RawIOBase):
    """A connection on which all of the request has one deadline, not each reading."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._end = connection, time.monotonic() + REQUEST_SECONDS

    def readable(self) -> bool:
        """For `BufferedReader`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises `TimeoutError` after the deadline."""
        self._connection.settimeout(max(0.001, self._end - time.monotonic()))
        return self._connection.recv_into(buffer)

    def write(self, data: Any) -> int:
        """A client that does not read is one that went away, and no error to be logged."""
        self._connection.settimeout(SILENT_SECONDS)
        try:
            self._connection.sendall(data)
        except TimeoutError as error:
            raise ConnectionAbortedError from error
        return len(data)


class PageHandler(WSGIRequestHandler):
    """One request, without a line in the log."""

    def setup(self) -> None:
        """Both directions, each with a deadline."""
        self.connection = self.request
        self.wfile = _Client(self.connection)  # type: ignore[assignment]
        self.rfile = io.BufferedReader(self.wfile)

    def get_environ(self) -> dict[str, Any]:
        """With the connection, for the server."""
        return super().get_environ() | {"sar_agent.client": self.connection}

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class PageServer(ThreadingMixIn, WSGIServer):
    """Listens; answers of `apps`, by path, have places kept for them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, family: int, address: Any, apps: Mapping[str, WSGIApplication], other: WSGIApplication
    ) -> None:
        self.address_family, self._apps, self._other = family, apps, other
        self._changed = threading.RLock()
        self._waiting: dict[socket.socket, str] = {}
        """Connections that wait for their clients, with the addresses; the longest first."""
        self._clients = Quota[str](MOST_WAITING, MOST_WAITING // 2)
        self._answering = Quota[str](
            MOST_ANSWERING, MOST_ANSWERING // 2, kept=KEPT_FOR_METRICS, trusted=set(apps)
        )
        super().__init__(address, PageHandler)
        self.set_app(self._answer)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A new connection."""
        self._wait_for(request, client_address[0])
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """The connection ends."""
        self._waits_no_more(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours."""

    def _wait_for(self, client: socket.socket, address: str) -> None:
        with self._changed:
            if full := self._clients.lacks(address):
                own = full is Bound.ONE
                old = next(c for c, a in self._waiting.items() if a == address or not own)
                self._waits_no_more(old)
                with suppress(OSError):
                    old.shutdown(socket.SHUT_RDWR)  # its thread closes it
            self._clients.add(address)
            self._waiting[client] = address

    def _waits_no_more(self, client: socket.socket) -> None:
        with self._changed:
            if address := self._waiting.pop(client, ""):
                self._clients.give(address)

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path, address = environ.get("PATH_INFO", ""), environ["REMOTE_ADDR"]
        place = path if path in self._apps else address
        if self._answering.try_add(place, patience=SILENT_SECONDS):
            start("503 Service Unavailable", [("Content-Type", "text/plain")])
            return [b"too many requests are being answered; try again\n"]
        try:
            self._waits_no_more(environ["sar_agent.client"])
            return list(self._apps.get(path, self._other)(environ, start))
        finally:
            self._answering.give(place)
            self._wait_for(environ["sar_agent.client"], address)


def serve_http(
    host: str, port: int, apps: Mapping[str, WSGIApplication], other: WSGIApplication | None = None
) -> PageServer:
    """Serves `apps` by path, and `other` for all further paths (without it, the first app), until
    the process ends. Raises `OSError` where the address cannot be used."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    ServerHandler.server_software = "sar-agent"
    server = PageServer(family, address[:2], apps, other or next(iter(apps.values())))
    serve = partial(server.serve_forever, poll_interval=END_SECONDS)
    threading.Thread(target=serve, name="http", daemon=True).start()
    return server
