"""The HTTP server of metrics and page: a thread for each request, but only a few at a time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Mapping
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MOST_AT_ONCE = 8
"""Requests under way; further ones wait in the kernel's queue, and then are refused."""
SILENCE = 10.0
"""Seconds after which a client that sends or reads nothing is dropped."""


class PageHandler(WSGIRequestHandler):
    """One request, without a line in the log."""

    timeout = int(SILENCE)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class PageServer(ThreadingMixIn, WSGIServer):
    """Takes a request when one of its few places is free."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, *args: Any, **options: Any) -> None:
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(*args, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Waits for a place, at most as long as a silent client keeps one."""
        if self._places.acquire(timeout=SILENCE):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In the thread of the request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours."""


def serve_http(
    host: str,
    port: int,
    apps: Mapping[str, WSGIApplication],
    other: WSGIApplication | None = None,
) -> PageServer:
    """Serves `apps` by path, and `other` for all further paths (without it, the first app), until
    the process ends. Raises `OSError` where the address cannot be used."""
    fallback = other or next(iter(apps.values()))

    def app(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        return apps.get(environ.get("PATH_INFO", ""), fallback)(environ, start)

    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    kind = type("PageServerOfFamily", (PageServer,), {"address_family": family})
    ServerHandler.server_software = "sar-agent"
    server: PageServer = kind(address[:2], PageHandler)
    server.set_app(app)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
