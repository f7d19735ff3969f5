"""Hands each pass to the page as an immutable snapshot.

A pass pays for references only. The one exception is a changed fabric, which is compared with the
one before (`reports/lost_links.py`).
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from sar_agent import __version__
from sar_agent.agent.current import Current
from sar_agent.agent.history import DECISION, History
from sar_agent.agent.job_days import JobDays
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.source_ages import SourceAge
from sar_agent.agent.state import State
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures
from sar_agent.quality.channel_traffic import Traffic
from sar_agent.reports.lost_links import LostLinks
from sar_agent.reports.page_box import Trouble
from sar_agent.services.live_page.pages import LivePages
from sar_agent.services.live_page.snapshot import PageSnapshot
from sar_agent.services.live_page.web_app import WebApp

SHOWN_DECISIONS = 20
"""Decisions on the page."""
SAVED_SECONDS = 300.0
"""Seconds for which sums over the last 30 days are kept: those of a large site take a second."""
_SHOWN = ("at", "who", "reason", "why", "result", "message", "engine", "generation", "jobs",
          "seconds", "entries_changed", "transition", "before", "predicted", "how",
          "ring_entries_moved")  # fmt: skip


class PageFeed:
    """Shows each pass on the pages."""

    def __init__(self, parts: Parts) -> None:
        self.config, self.metrics = parts.config, parts.metrics
        self.pages, self.observer = LivePages(), parts.observer
        self._boxes, self._ages = parts.boxes, parts.ages
        self._app = WebApp(self.pages, self.config.agent.page)
        self.metrics.page = self.metrics.page or self._app
        self.problems = parts.problems
        self._history = History(self.config.agent.state_dir)
        self._days = JobDays(self.config.agent.state_dir)
        self._saved: tuple[float, dict[str, Any]] = (-SAVED_SECONDS, {})
        """When the last 30 days were added up, by `time.monotonic`, and what they have saved."""
        self._written = 0
        """When the history was last written, as far as it has been read."""
        self._decisions: tuple[dict[str, Any], ...] = ()
        self._unread = ""
        """Why the history could not be read."""
        self._lost = LostLinks()
        self._number = 0
        self._site: Observation | None = None
        """What was seen last, with the fabric and the jobs of what is in force."""
        self._fabric: Fabric | None = None
        self._mix: JobMix | None = None
        self._since: tuple[object, float] = (None, 0.0)
        """What was in force when it was last looked at, and since when it is known to be."""
        self._wrong: dict[str, float] = {}
        """What is wrong, without its numbers, and since when."""

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """The pass has ended. One that saw nothing shows what was seen before."""
        if site is not None:
            self._site, self._fabric, self._mix = site, site.fabric, site.mix
            self._lost.see(site.fabric)
        if report.result is Result.INSTALLED and current.plan:
            self._fabric, self._mix = current.plan.fabric, current.plan.mix
        site, fabric = self._site, self._fabric
        in_force, measures = current.in_force, current.measures
        self._number += 1
        if fabric is None or measures is None or len(measures.channel_load) != fabric.channels:
            measures = None
        status = in_force.status if in_force else site.status if site else None
        decisions = self._last_decisions()
        agent = self.config.agent
        self.metrics.page = self._app  # a standby had another one
        self.pages.show(
            PageSnapshot(
                number=self._number,
                at=time.time(),
                version=__version__,
                mode=agent.mode,
                engine=agent.engine,
                interval=agent.interval_seconds,
                result=report.result.value,
                sentence=report.sentence,
                troubles=self._troubles(report, site, status),
                in_force=self._shown(status, current.state),
                fabric=fabric,
                mix=self._mix,
                starts={r.id: r.start for r in self.observer.running() if r.start},
                pending=self.observer.planned,
                routes=in_force.routes if in_force and measures else None,
                measures=measures,
                planned=_planned(current) if agent.mode == "observe" and measures else None,
                saved=self._saved_now,
                decisions=decisions,
                sources={n: (age.at, age.stale) for n, age in self._sources().items()},
                boxes=tuple(self._boxes.values()),
            )
        )

    def _sources(self) -> dict[str, SourceAge]:
        return self.observer.ages | self._ages

    def _saved_now(self) -> dict[str, Any]:
        """Called by the HTTP server, one request at a time."""
        if time.monotonic() - self._saved[0] >= SAVED_SECONDS:
            saved = None
            with suppress(SarError):  # a pass that writes to the file says it
                saved = self._days.saved()
            self._saved = time.monotonic(), asdict(saved) if saved else {}
        return self._saved[1]

    def _shown(self, status: SmStatus | None, state: State | None) -> dict[str, Any] | None:
        if status is None:
            return None
        what = (status.engine, status.identity, status.process)
        if what != self._since[0]:
            self._since = what, time.time()
        mine = status.ours and state is not None and state.identity == status.identity
        return {
            "engine": status.engine,
            "ours": status.ours,
            "generation": status.generation,
            "amendments": status.amendments,
            "since": state.installed_at if mine and state else self._since[1],
            "held": mine and state is not None and state.held,
            "routing": state.engine if mine and state else "",
            "lanes": state.lanes if mine and state else "",
            "dumped": status.built_at if status.engine == "unknown" else 0.0,
        }

    def _troubles(
        self, report: Report, site: Observation | None, status: SmStatus | None
    ) -> tuple[Trouble, ...]:
        """What is wrong, the most urgent first; each with the time when it was first shown."""
        said: list[str] = []
        if report.result in (Result.FAILED, Result.WAITING):
            said.append(report.sentence)
        install = self.config.agent.mode == "install"
        if site is not None and site.status is None and install:
            said.append(site.status_problem)
        if status is not None and not status.ours and install:
            said.append(f"engine {status.engine} is in force, not the agent's routes")
        # Where nothing is installed and OpenSM's dump tells the tables, there may be no plugin.
        if status is not None and status.unsettled and (status.process or install):
            said.append(status.unsettled)
        lost = self._lost.troubles()
        for problems in self.problems:
            said += problems.present()
        said.append(self._unread)
        said += [age.stale for age in self._ages.values()]
        said += [box.wrong for box in self._boxes.values()]
        first, now = self._wrong, time.time()
        unique = [text for text in dict.fromkeys(said) if text]
        kept = [t for t in unique if not any(t != other and t in other for other in unique)]
        since = {text: first.get(_without_numbers(text), now) for text in kept}
        self._wrong = {_without_numbers(text): at for text, at in since.items()}
        own = tuple(Trouble(text, at) for text, at in since.items())
        return (*own[:1], *lost, *own[1:])

    def _last_decisions(self) -> tuple[dict[str, Any], ...]:
        """The newest rows; read again only where the history was written since."""
        try:
            written = self._history.path.stat().st_mtime_ns
        except OSError:
            return self._decisions
        if written != self._written:
            try:
                rows = self._history.last(SHOWN_DECISIONS, DECISION)
            except SarError as error:
                self._unread = f"{error}; the last decisions are not shown"
                return self._decisions
            self._unread = ""
            self._decisions = tuple({name: getattr(r, name) for name in _SHOWN} for r in rows)
            self._written = written
        return self._decisions


def _without_numbers(sentence: str) -> str:
    """Equal for sentences on the same problem, such as `read 6 s ago` and `read 36 s ago`."""
    return re.sub(r"\d+", "", sentence)


def _planned(current: Current) -> tuple[Measures, Traffic] | None:
    measured = current.planned.measured if current.planned else None
    return (measured, measured.traffic) if measured else None
