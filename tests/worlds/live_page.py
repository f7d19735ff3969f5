"""The live page, asked."""

from __future__ import annotations

from typing import Any

from sar_agent.services.live_page.web_app import WebApp


def ask(app: WebApp, path: str, query: str = "", **more: str) -> tuple[str, dict[str, str], bytes]:
    """(status, headers, body) for a client on this machine."""
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query,
               "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:9777"} | more  # fmt: skip
    said: list[Any] = []
    body = b"".join(app(environ, lambda status, headers: said.extend((status, dict(headers)))))  # type: ignore[arg-type,return-value,misc]
    return said[0], said[1], body
