"""The page as a WSGI application: read-only, and nothing in it comes from another machine."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs

from sar_agent.services.live_page.pages import LivePages

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

Access = Literal["loopback", "any", "off"]
LONGEST_QUERY = 200
HEADERS = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
]
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?")
"""A Host header (RFC 9112, 3.2): an address or a name, with a port or without, and nothing else."""
PARAMETERS = {"/api/job.json": "job", "/api/link.json": "link"}


class WebApp:
    """`access` is `agent.page`: who may see job numbers and names of switches."""

    def __init__(self, pages: LivePages, access: Access) -> None:
        self.pages, self.access = pages, access

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """One request."""
        method, path = environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")
        query = environ.get("QUERY_STRING", "")
        if method not in ("GET", "HEAD"):
            return _sentence(start, "405 Method Not Allowed", "the page can only be read", method)
        if self.access == "off":
            return _sentence(start, "404 Not Found", "the page is off (agent.page)", method)
        if self.access == "loopback" and not _is_local(environ):
            return _sentence(
                start,
                "403 Forbidden",
                "the page is only for this machine (agent.page); use a tunnel: "
                "ssh -L 9777:127.0.0.1:9777 HOST, then open http://127.0.0.1:9777/",
                method,
            )
        if not _is_called_by_own_name(environ.get("HTTP_HOST", ""), self.access):
            return _sentence(
                start,
                "403 Forbidden",
                "ask for the page by an address of this machine"
                + f" or as {_own_name()}" * (self.access == "any"),
                method,
            )
        value = ""
        if name := PARAMETERS.get(path):
            value = _parameter(name, query)
        answer = self.pages.answer(path, value)
        if answer is None:
            return _sentence(start, "404 Not Found", "there is no such thing here", method)
        if environ.get("HTTP_IF_NONE_MATCH") == answer.tag:
            start("304 Not Modified", [*HEADERS, ("ETag", answer.tag)])
            return []
        body, coding = answer.body, []
        if answer.packed and "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
            body, coding = answer.packed, [("Content-Encoding", "gzip")]
        headers = [("Content-Type", answer.kind), ("Content-Length", str(len(body)))]
        cached = [("ETag", answer.tag), ("Vary", "Accept-Encoding")]
        start("200 OK", [*headers, *coding, *cached, *HEADERS])
        return [] if method == "HEAD" else [body]


def _parameter(name: str, query: str) -> str:
    """The parameter's value; empty where there is none, or the query is none of the page's."""
    if len(query) > LONGEST_QUERY:
        return ""
    try:
        return parse_qs(query, max_num_fields=4).get(name, [""])[0]
    except ValueError:
        return ""


def _is_local(environ: WSGIEnvironment) -> bool:
    """Whether the client is on this machine."""
    try:
        client = ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return (getattr(client, "ipv4_mapped", None) or client).is_loopback


def _is_called_by_own_name(host: str, access: Access) -> bool:
    """Whether the Host of a request is an address, `localhost`, or, for `any`, a name that only
    this site can give: one without a dot, or this machine's whole name. The name of another site
    that was made to lead here (DNS rebinding) is refused: a page of that site could read this
    one."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = (found[1] or found[2]).lower().rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        local = bool(name) and ("." not in name or name == _own_name())
        return name == "localhost" or (access == "any" and local)
    return True


@cache
def _own_name() -> str:
    return socket.getfqdn().lower()


def _sentence(start: StartResponse, status: str, text: str, method: str) -> list[bytes]:
    body = (text + "\n").encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start(status, [*headers, *HEADERS])
    return [] if method == "HEAD" else [body]
