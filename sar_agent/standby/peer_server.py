"""Serves this agent's snapshots to its peer, and to nobody else.

A client has `HANDSHAKE` seconds to show the certificate; until then it has no answer, one of few
places, and one thread. Half of the places are kept for addresses of `standby.peer` and those that
have shown the certificate; of the other half no address has more than half. A place whose client
failed stays taken for a moment, which bounds how often anybody can try.

Requests:

    {"ask": "look", "known": DIGEST}     the claim, and the files unless the digest is still valid
    {"ask": "get", "files": [DIGEST …]}  the bytes of these files, one after the other
    {"ask": "rows", "after": SECONDS}    the oldest decisions after this time
"""

from __future__ import annotations

import logging
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sar_agent.agent.history import History
from sar_agent.errors import SarError, Unavailable
from sar_agent.standby.channel import Channel, PeerProblem
from sar_agent.standby.snapshot import MOST_FILES, Snapshot, SnapshotSource
from sar_agent.standby.terms import Claim
from sar_agent.util.quota import Quota

log = logging.getLogger(__name__)
HANDSHAKE = 5.0
PLACES = 8
AFTER_FAILURE = 0.5
BACKLOG = 16
LOG_INTERVAL = 60.0
"""Seconds between two log lines about strangers."""
ROWS = 500
"""Decisions in an answer."""
LEAST_INTERVAL = 0.02
"""Seconds between two requests of one connection."""


class PeerServer:
    """Answers at `address` between `start` and `stop`. `claim` is called in other threads."""

    def __init__(
        self,
        address: tuple[str, int],
        context: ssl.SSLContext,
        claim: Callable[[], Claim],
        source: SnapshotSource,
        history: History,
        peer: str = "",
    ) -> None:
        """`peer` is the host of `standby.peer`."""
        self._address, self._context, self._peer = address, context, peer
        self._claim, self._source, self._history = claim, source, history
        self._taking = threading.Lock()
        self._lock = threading.Lock()
        self._known: set[str] = set()
        """Addresses of the peer."""
        self._places = Quota(PLACES, PLACES // 4, kept=PLACES // 2, trusted=self._known)
        self._open: set[socket.socket] = set()
        self._strangers, self._logged = 0, -math.inf
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen. Raises `Unavailable`."""
        host, port = self._address
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise Unavailable(
                f"cannot listen for the other agent on {host}:{port} ({error.strerror or error}); "
                "set standby.listen to a free address"
            ) from error
        self._listener = listener
        with suppress(OSError):  # a name that is not known now: the peer shows the certificate
            self._known.update(
                _plain(found[4][0]) for found in socket.getaddrinfo(self._peer, None)
            )
        self._thread = threading.Thread(target=self._accept, name="standby", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the listener and all connections."""
        listener, self._listener = self._listener, None
        with self._lock:
            ends = [*self._open]
        for end in ([listener] if listener else []) + ends:
            _cut(end)
        if listener:
            listener.close()
        if self._thread:
            self._thread.join(HANDSHAKE)

    def _accept(self) -> None:
        while (listener := self._listener) is not None:
            try:
                raw, address = listener.accept()
            except OSError:
                if self._listener is None:
                    return
                time.sleep(AFTER_FAILURE)  # no file descriptor left
                continue
            host = _plain(address[0])
            if self._places.take(host):
                raw.close()
                continue
            with self._lock:
                self._open.add(raw)
            try:
                threading.Thread(target=self._serve, args=(raw, host), daemon=True).start()
            except RuntimeError:  # no thread left
                self._release(raw, host)

    def _serve(self, raw: socket.socket, host: str) -> None:
        late = None
        try:
            raw.settimeout(HANDSHAKE)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            secure = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
            with self._lock:  # the handle has moved into `secure`
                self._open.discard(raw)
                self._open.add(secure)
            raw = secure
            late = threading.Timer(HANDSHAKE, _cut, (secure,))
            late.daemon = True
            late.start()
            secure.do_handshake()
            late.cancel()
            self._known.add(host)
            self._answer_all(Channel(secure, host))
        except (OSError, ValueError, RuntimeError) as error:
            self._refused(host, error)
            time.sleep(AFTER_FAILURE)
        except SarError as error:
            log.debug("%s", error)
        finally:
            if late:
                late.cancel()
            self._release(raw, host)

    def _refused(self, host: str, error: Exception) -> None:
        """Logged now and then: strangers must not fill the log."""
        with self._lock:
            self._strangers += 1
            if time.monotonic() - self._logged < LOG_INTERVAL:
                return
            count, self._strangers, self._logged = self._strangers, 0, time.monotonic()
        log.warning(
            "%d clients have shown no certificate of ours, the last one at %s (%s)",
            count,
            host,
            _brief(error),
        )

    def _release(self, raw: socket.socket, host: str) -> None:
        with suppress(OSError):
            raw.close()
        with self._lock:
            self._open.discard(raw)
        self._places.give(host)

    def _answer_all(self, channel: Channel) -> None:
        snapshot: Snapshot | None = None
        try:
            while request := channel.receive():
                began = time.monotonic()
                match request.get("ask"):
                    case "look":
                        if snapshot:
                            snapshot.close()
                            snapshot = None
                        snapshot = self._look(channel, request.get("known"))
                    case "get" if snapshot:
                        _send_files(channel, snapshot, request.get("files"))
                    case "rows":
                        channel.send(self._rows(request.get("after")))
                    case _:
                        raise PeerProblem(f"{channel.name}: unknown request")
                time.sleep(max(0.0, LEAST_INTERVAL - (time.monotonic() - began)))
        finally:
            if snapshot:
                snapshot.close()
            channel.close()

    def _look(self, channel: Channel, known: Any) -> Snapshot | None:
        try:
            with self._taking:  # the claim is that of the files, or newer than it
                snapshot = self._source.take()
                claim = self._claim()
        except (SarError, OSError) as error:
            channel.send({"error": str(error)[:1000]})
            return None
        answer: dict[str, Any] = {"claim": claim.model_dump(), "digest": snapshot.digest}
        if known != snapshot.digest:
            answer["files"] = [file.model_dump() for file in snapshot.files]
        channel.send(answer)
        return snapshot

    def _rows(self, after: Any) -> dict[str, Any]:
        if not isinstance(after, int | float):
            raise PeerProblem("rows after what?")
        try:
            return {"rows": [asdict(row) for row in self._history.after(float(after), ROWS)]}
        except SarError as error:
            return {"error": str(error)[:1000]}


def _send_files(channel: Channel, snapshot: Snapshot, digests: Any) -> None:
    known = {file.digest for file in snapshot.files}
    if (
        not isinstance(digests, list)
        or len(digests) > MOST_FILES
        or not all(isinstance(digest, str) and digest in known for digest in digests)
    ):
        raise PeerProblem(f"{channel.name}: asked for files that are not in the snapshot")
    for digest in digests:
        for piece in snapshot.read(digest):
            channel.send_bytes(piece)


def _cut(raw: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(raw, socket.SHUT_RDWR)  # SSLSocket's own is for one thread


def _plain(address: Any) -> str:
    """The same for an IPv4 address, however it came."""
    return str(address).removeprefix("::ffff:")


def _brief(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)[:100]
