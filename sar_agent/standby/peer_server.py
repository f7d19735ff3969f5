"""Serves this agent's state to its peer, and to nobody else.

A client has `HANDSHAKE_SECONDS` to show the certificate; until then it has no answer, one of few
places, and one thread. Half of the places are kept for addresses of `standby.peer` and those that
have shown the certificate; of the other half no address has more than half. A place whose client
failed stays taken for a moment, which bounds how often anybody can try.

    GET /look               the claim, and the files of the state with their digests
    GET /files/NAME         the bytes of one of them
    GET /rows?after=TIME    the oldest decisions after this time
"""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

from sar_agent.errors import SarError, Unavailable
from sar_agent.standby.channel import DEADLINE, PeerProblem, tls_context
from sar_agent.standby.peer_link import PeerLink
from sar_agent.standby.snapshot import largest
from sar_agent.util.quota import Quota

log = logging.getLogger(__name__)
HANDSHAKE_SECONDS = 5.0
MOST_CONNECTIONS = 8
FAILURE_PAUSE_SECONDS = 0.5
LOG_INTERVAL_SECONDS = 60.0
"""Seconds between two log lines about strangers."""
ROWS_AN_ANSWER = 500
"""Decisions in an answer."""


class PeerServer(ThreadingTCPServer):
    """Answers at `standby.listen` between `start` and `stop`, in other threads. Raises `InputError`
    where the certificate cannot be used."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 16

    def __init__(self, link: PeerLink) -> None:
        self.link, config = link, link.config.standby
        self._context = tls_context(Path(config.certificate), server=True)
        self._known: set[str] = set()
        """Addresses of the peer."""
        self._places = Quota(
            MOST_CONNECTIONS, MOST_CONNECTIONS // 4, kept=MOST_CONNECTIONS // 2, trusted=self._known
        )
        self._lock = threading.Lock()
        self._strangers, self._logged = 0, -math.inf
        address = config.listen_host_port
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Requests, bind_and_activate=False)

    def start(self) -> None:
        """Listen. Raises `Unavailable`."""
        try:
            self.server_bind()
            self.server_activate()
        except OSError as error:
            self.server_close()
            host, port = self.link.config.standby.listen_host_port
            raise Unavailable(
                f"cannot listen for the other agent on {host}:{port} ({error.strerror or error}); "
                "set standby.listen to a free address"
            ) from error
        with suppress(OSError):  # a name that is not known now: the peer shows the certificate
            found = socket.getaddrinfo(self.link.config.standby.peer_host_port[0], None)
            self._known.update(_plain(address[0]) for *_, address in found)
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def stop(self) -> None:
        """End the listener; connections end with the process, or when they are idle."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Called by socketserver: gives the client a thread if there is a place."""
        host = _plain(client_address[0])
        if self._places.try_add(host):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is left
            self.shutdown_request(request)
            self._places.give(host)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Called by socketserver in that thread."""
        super().process_request_thread(request, client_address)
        self._places.give(_plain(client_address[0]))

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Called by socketserver: answers a client that shows the certificate."""
        host = _plain(client_address[0])
        request.settimeout(HANDSHAKE_SECONDS)
        try:
            secure = self._context.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            )
        except OSError as error:  # it has ended the connection
            self._refuse(host, error)
            return
        with secure:
            late = threading.Timer(HANDSHAKE_SECONDS, _cut, (secure,))
            late.daemon = True
            try:
                late.start()
                secure.do_handshake()
            except (OSError, ValueError, RuntimeError) as error:
                self._refuse(host, error)
                return
            finally:
                late.cancel()
            self._known.add(host)
            with suppress(OSError):
                _Requests(secure, client_address, self)

    def _refuse(self, host: str, error: Exception) -> None:
        """Logged now and then: strangers must not fill the log."""
        with self._lock:
            self._strangers += 1
            count = self._strangers
            if due := time.monotonic() - self._logged >= LOG_INTERVAL_SECONDS:
                self._strangers, self._logged = 0, time.monotonic()
        if due:
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            log.warning(
                "%d clients have shown no certificate of ours, the last one at %s (%.100s)",
                count,
                host,
                why,
            )
        time.sleep(FAILURE_PAUSE_SECONDS)


class _Requests(BaseHTTPRequestHandler):
    """The requests of one connection with the peer."""

    server: PeerServer
    protocol_version = "HTTP/1.1"  # the connection stays
    timeout = DEADLINE
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Called by http.server."""
        link = self.server.link
        path, _, after = self.path.partition("?after=")
        try:
            if path == "/look":
                files = link.source.snapshot()  # then the claim is that of the files, or newer
                answer: Any = {
                    "claim": link.claim().model_dump(),
                    "files": [file.model_dump() for file in files],
                }
            elif path == "/rows":
                answer = [asdict(row) for row in link.history.after(float(after), ROWS_AN_ANSWER)]
            elif largest(name := path.removeprefix("/files/")) >= 0:
                self._send_file(link.folders.path(name))
                return
            else:
                raise PeerProblem("unknown request")
        except (SarError, ValueError) as error:
            self._send(500, str(error).encode())
        except OSError as error:
            self._send(404 if isinstance(error, FileNotFoundError) else 500, str(error).encode())
        else:
            self._send(200, json.dumps(answer).encode())

    def _send_file(self, path: Path) -> None:
        with path.open("rb") as file:
            self._send_head(200, os.fstat(file.fileno()).st_size)
            shutil.copyfileobj(file, self.wfile)

    def _send(self, status: int, text: bytes) -> None:
        self._send_head(status, len(text))
        self.wfile.write(text)

    def _send_head(self, status: int, size: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: the peer looks every second."""


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # SSLSocket's own is for one thread


def _plain(address: Any) -> str:
    """The same for an IPv4 address, however it came."""
    return str(address).removeprefix("::ffff:")
