"""The answers to HTTP requests for the page: each is made of the newest snapshot, once.

`show` is called by the agent and only stores a reference. An answer is computed by the first
request that needs it and kept until the next snapshot; one at a time, so that many readers take no
more of the processor than one.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.services.live_page.answers import job_answer, link_answer, loads_answer, state_answer
from sar_agent.services.live_page.cells import HeatCells
from sar_agent.services.live_page.snapshot import PageSnapshot

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/heat.js": ("heat.js", "text/javascript; charset=utf-8"),
}
JSON = "application/json"
WORTH_PACKING = 2048
MOST_KEPT = 64
"""Answers that are kept of one snapshot; of more, all are computed again."""


@dataclass(frozen=True)
class PageAnswer:
    """A body, its type, and a tag that is the same for the same body."""

    body: bytes
    packed: bytes
    """The body by gzip; empty where that is not worth it."""
    kind: str
    tag: str


class LivePages:
    """Thread-safe. `process` is part of all tags: it differs after a restart."""

    def __init__(self, process: str = "") -> None:
        self._process = process or f"{os.getpid()}-{time.time_ns():x}"
        self._snapshot = PageSnapshot()
        self._lock = threading.Lock()
        self._kept: dict[str, PageAnswer | None] = {}
        self._kept_of: PageSnapshot | None = None
        self._cells: HeatCells | None = None
        self._traffic: Traffic | None = None

    def show(self, snapshot: PageSnapshot) -> None:
        """From now on, answers are of this snapshot."""
        self._snapshot = snapshot

    def answer(self, path: str, value: str = "") -> PageAnswer | None:
        """The answer for a path, `value` being its parameter; None where there is none."""
        with self._lock:
            page = self._snapshot
            if page is not self._kept_of or len(self._kept) >= MOST_KEPT:
                self._kept, self._kept_of = {}, page
            key = f"{path}?{value}"
            if key not in self._kept:
                self._kept[key] = self._make(path, value, page)
            return self._kept[key]

    def _make(self, path: str, value: str, page: PageSnapshot) -> PageAnswer | None:
        if path in STATIC:
            name, kind = STATIC[path]
            body = (files("sar_agent.services.live_page") / "static" / name).read_bytes()
            return _answer(body, kind, self._process)
        made = self._made(path, value, page)
        if made is None:
            return None
        version = made["fabric"] if path == "/api/fabric.json" else page.number
        text = json.dumps(made, separators=(",", ":"), allow_nan=False)
        return _answer(text.encode(), JSON, f"{self._process}-{version}")

    def _made(self, path: str, value: str, page: PageSnapshot) -> dict[str, Any] | None:
        """The object for a path; None where there is none."""
        if path == "/api/state.json":
            return state_answer(page, self._traffic_of(page))
        cells = self._cells_of(page)
        if cells is None:
            return None
        if path == "/api/fabric.json":
            return cells.json()
        if path == "/api/loads.json":
            return loads_answer(page, cells)
        if path == "/api/job.json" and (traffic := self._traffic_of(page)):
            return job_answer(value, cells, traffic)
        if path == "/api/link.json" and value.isdecimal() and len(value) <= 9:
            return link_answer(int(value), page, cells, self._traffic_of(page))
        return None

    def _cells_of(self, page: PageSnapshot) -> HeatCells | None:
        if page.fabric is None:
            return None
        if self._cells is None or self._cells.fabric.digest != page.fabric.digest:
            self._cells = HeatCells.of(page.fabric)
        return self._cells

    def _traffic_of(self, page: PageSnapshot) -> Traffic | None:
        fabric, mix, routes = page.fabric, page.mix, page.routes
        if fabric is None or mix is None or routes is None:
            return None
        last = self._traffic
        same = last and last.fabric is fabric and last.routes is routes
        if not (last and same and _named(last.mix) == _named(mix)):
            self._traffic = traffic_of(fabric, mix, routes)
        return self._traffic


def _named(mix: JobMix) -> list[tuple[str, bytes]]:
    """Equal for the same jobs of the same numbers."""
    return [(job.id, job.key) for job in mix.jobs]


def _answer(body: bytes, kind: str, tag: str) -> PageAnswer:
    packed = gzip.compress(body, 3, mtime=0) if len(body) >= WORTH_PACKING else b""
    return PageAnswer(body, packed, kind, f'"{tag}"')
