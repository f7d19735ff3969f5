"""Which cables are bad now, since when, which running jobs they hurt, and what has changed.

What is odd or has counted errors is decided by the report of the command `cables`. This adds time:
limits for one window, links that go down again and again within an hour, links that were there
before, and what was so already when the agent first looked (`unlike`), which is no event.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sar_agent.counters.counter_files import Place
from sar_agent.counters.port_errors import PortErrors
from sar_agent.fabric import Fabric
from sar_agent.quality.worst_links import jobs_over
from sar_agent.reports.cables import CableFinding, CableReport, cable_report
from sar_agent.reports.lost_links import LostLinks
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.services.cable_watch.growth import Growth

Kind = Literal["errors", "flapping", "missing", "degraded", "unlike"]
LIMITS = {"symbol_errors": 10, "receive_errors": 10, "link_recoveries": 10}
"""Counts of a port in one window from which its cable is bad: the defaults of ibqueryerrors.
Packets that a switch threw away (`discards`) are no fault of the cable: congestion does that."""
MOST_DOWNS, DOWNS_SECONDS = 3, 3600.0
"""A link that went down so often within an hour flaps; a host that reboots takes it down twice."""
MOST_BAD = 10_000


@dataclass(frozen=True)
class BadCable:
    """One thing that is wrong."""

    kind: Kind
    sentence: str
    since: float
    """When it was first seen, Unix seconds."""
    jobs: tuple[str, ...] = ()
    """Those that run now and have routes over it, or run on its host."""


@dataclass(frozen=True)
class CableEvent:
    """A cable went bad, or is well again."""

    bad: bool
    cable: BadCable


@dataclass
class CableWatch:
    """Keeps what was bad at the look before."""

    bad: dict[tuple[Kind, str], BadCable] = field(default_factory=dict)
    """By kind and cable."""
    lost: LostLinks = field(default_factory=LostLinks)
    _first: set[str] | None = None
    """What was odd when the agent first looked."""
    _downs: deque[tuple[float, Mapping[Place, int]]] = field(default_factory=deque)
    """Links that went down, window by window."""
    _window: float = 0.0
    """The end of the last one in `_downs`."""
    _jobs_before: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    """The jobs over links that are missing, when they were there."""
    _last: SiteDumps | None = None
    _reported: tuple[tuple[object, ...], CableReport | None] = ((), None)
    """The last report, and the traffic, the jobs and the counters that it is of."""

    def look(self, dumps: SiteDumps, growth: Growth | None) -> list[CableEvent]:
        """The site now, with what was counted in the last window; what has changed."""
        now, found = time.time(), dict[tuple[Kind, str], tuple[str, tuple[str, ...]]]()
        errors = growth.errors if growth else None
        report = self._report(dumps, growth)
        first = self._first is None
        if self._first is None:
            self._first = {f.sentence for f in report.findings if f.kind == "odd"}
        for finding in report.findings:
            if finding.kind == "odd":
                kind: Kind = "unlike" if finding.sentence in self._first else "degraded"
                found[kind, finding.sentence] = finding.sentence, finding.jobs
            else:
                found["errors", _cable(finding)] = finding.sentence, finding.jobs
        # What was repaired is no excuse for the next time.
        self._first &= {f.sentence for f in report.findings}
        for finding in self._flapping(dumps, errors):
            found["flapping", _cable(finding)] = finding.sentence, finding.jobs
        found |= self._missing(dumps)
        self._last = dumps
        events = list[CableEvent]()
        bad = dict[tuple[Kind, str], BadCable]()
        for key, (sentence, jobs) in list(found.items())[:MOST_BAD]:
            before = self.bad.get(key)
            bad[key] = BadCable(key[0], sentence, before.since if before else now, jobs)
            if before is None and not (first and key[0] == "unlike"):
                events.append(CableEvent(True, bad[key]))
        events += [CableEvent(False, cable) for key, cable in self.bad.items() if key not in bad]
        self.bad = bad
        return events

    def _report(self, dumps: SiteDumps, growth: Growth | None) -> CableReport:
        """The report of now; the last one where neither jobs nor bad counts have changed."""
        errors = _above(growth.errors) if growth else None
        made_of = dumps.predicted, dumps.records, dumps.window, errors and errors.counts
        before, report = self._reported
        same = dumps.predicted is not None and len(before) == len(made_of)
        same = same and before[0] is made_of[0] and before[2] is made_of[2]
        if report is None or not same or before[1::2] != made_of[1::2]:
            report = cable_report(replace(dumps, errors=errors))
            self._reported = made_of, report
        return report

    def _flapping(self, dumps: SiteDumps, errors: PortErrors | None) -> list[CableFinding]:
        now = time.time()
        if errors and errors.time > self._window:
            self._window = errors.time
            downs = {p: c["link_downed"] for p, c in errors.counts.items() if "link_downed" in c}
            self._downs.append((errors.time, downs))
        while self._downs and self._downs[0][0] < now - DOWNS_SECONDS:
            self._downs.popleft()
        total: dict[Place, int] = {}
        for _, of_window in self._downs:
            for place, count in of_window.items():
                total[place] = total.get(place, 0) + count
        counts = {p: {"link_downed": n} for p, n in total.items() if n >= MOST_DOWNS}
        if not counts:
            return []
        report = cable_report(replace(dumps, errors=PortErrors("counters", counts)))
        said = "within an hour"
        findings = [f for f in report.findings if f.kind == "errors"]
        return [replace(f, sentence=f"{f.sentence} {said}") for f in findings]

    def _missing(self, dumps: SiteDumps) -> dict[tuple[Kind, str], tuple[str, tuple[str, ...]]]:
        before = self._last
        for link in self.lost.see(dumps.fabric):
            jobs: tuple[str, ...] = ()
            if before is not None and _has(before.fabric, link.channel, link.terminal):
                jobs = _jobs_at(before, link.channel, link.terminal)
            self._jobs_before[link.ends] = jobs
        running = {record.id for record in dumps.records}
        links = self.lost.links
        self._jobs_before = {e: jobs for e, jobs in self._jobs_before.items() if e in links}
        return {
            ("missing", name): (
                f"{name} is down",
                tuple(job for job in self._jobs_before.get(ends, ()) if job in running),
            )
            for ends, (name, _) in links.items()
        }


def _above(errors: PortErrors | None) -> PortErrors | None:
    """Those above the limits of a window."""
    if errors is None:
        return None
    counts = {
        place: above
        for place, of in errors.counts.items()
        if (above := {name: n for name, n in of.items() if n >= LIMITS.get(name, 1 << 64)})
    }
    return replace(errors, counts=counts)


def _cable(finding: CableFinding) -> str:
    """`"A"[1] – "B"[2]`, of a sentence on errors."""
    return finding.sentence.partition("]: ")[0] + "]"


def _has(fabric: Fabric, channel: int, terminal: int) -> bool:
    return channel < fabric.channels and terminal < fabric.terminals


def _jobs_at(dumps: SiteDumps, channel: int, terminal: int) -> tuple[str, ...]:
    if terminal >= 0:
        return tuple(job.job for job in dumps.jobs_on(terminal))
    ways = (channel, int(dumps.fabric.channel_reverse[channel]))
    return tuple(dict.fromkeys(job for way in ways for job in jobs_over(dumps.traffic, way)))
