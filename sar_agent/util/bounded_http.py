"""One HTTP request to a server of the site: whole deadline, bounded size, no redirect, no proxy.

The deadline holds for everything after the host's name is known: a server that sends one byte a
second holds nobody up longer than one that is silent. A redirect is not followed, since the
request may carry a token that is meant for this server alone. Proxies of the environment are not
asked: the server is the site's own.
**Weak spot:** looking up the host's name takes as long as the machine's resolver lets it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlencode, urlsplit

from sar_agent.errors import Unavailable

_PIECE = 1 << 20
MOST_SAID = 1 << 20
"""Bytes of an answer that refuses."""


class HttpRefused(Unavailable):
    """The server answered with an HTTP status that is no success."""

    def __init__(self, url: str, status: int, body: bytes) -> None:
        said = " ".join(body[:300].decode("utf-8", "replace").split())
        super().__init__(f"{url} answered HTTP {status}" + (f": {said}" if said else ""))
        self.status, self.said, self.body = status, said, body


def fetch(
    url: str,
    who: str,
    *,
    deadline: float,
    most: int,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> bytes:
    """The body of the answer: at most `most` bytes, within `deadline` seconds. With a `form` it is
    posted. `who` is the server's program, for messages. Raises `HttpRefused`, and for all else
    `Unavailable`, in one sentence."""
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.netloc}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    late = f"{shown}: {who} gave no whole answer within {deadline:.2g} s"
    end = time.monotonic() + deadline
    if deadline <= 0:
        raise Unavailable(late)
    maker = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    over = threading.Event()
    connection: HTTPConnection | None = None

    def hang_up() -> None:
        over.set()
        if connection is not None and connection.sock is not None:
            with suppress(OSError):  # it has ended by itself
                connection.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(deadline, hang_up)
    timer.daemon = True
    try:
        connection = maker(parts.hostname or "", parts.port, timeout=deadline)
        connection.connect()
        timer.start()
        body = None if form is None else urlencode(form).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(
            "GET" if body is None else "POST", path, body, {**(headers or {}), **kind}
        )
        answer = connection.getresponse()
        if 300 <= answer.status < 400:
            raise Unavailable(
                f"{shown} redirects to {answer.getheader('Location', 'nowhere')[:200]}; redirects "
                "are not followed: give the address that answers"
            )
        good = 200 <= answer.status < 300
        read = _bounded(answer, most if good else MOST_SAID, shown, end)
        if not good:
            raise HttpRefused(shown, answer.status, read)
        if over.is_set():
            raise Unavailable(late)
        if read[:1024].lstrip()[:1] == b"<":
            raise Unavailable(f"{shown} sent a web page, not data; is the address right?")
        return read
    except (OSError, HTTPException, ValueError) as error:
        if over.is_set() or isinstance(error, TimeoutError):
            raise Unavailable(late) from error
        if isinstance(error, OSError):
            why = getattr(error, "reason", None) or error.strerror or error
            raise Unavailable(
                f"{shown}: {who} does not answer ({why}); is the address right?"
            ) from error
        if isinstance(error, HTTPException):
            what = type(error).__name__
            raise Unavailable(f"{shown} broke off or does not speak HTTP ({what})") from error
        raise Unavailable(f"{shown} cannot be asked ({error})") from error
    finally:
        timer.cancel()
        if connection is not None:
            connection.close()


def _bounded(answer: HTTPResponse, most: int, shown: str, end: float) -> bytes:
    """The body. Raises `Unavailable` where it is longer, also where the server says so before."""
    length = answer.length
    too_long = f"{shown}: the answer is longer than {most >> 20} MiB"
    if length is not None and length > most:
        raise Unavailable(too_long)
    body = bytearray()
    while piece := answer.read(_PIECE):
        body += piece
        if len(body) > most:
            raise Unavailable(too_long)
        if time.monotonic() > end:
            raise TimeoutError
    if length is not None and len(body) < length:
        raise Unavailable(f"{shown} broke off after {len(body)} of {length} bytes")
    return bytes(body)
