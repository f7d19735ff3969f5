"""Watches the cables: metrics, a box on the page, and a row of the history for each change.

All else is in `cable_watch/`. Jobs are those over a cable by the tables in force; where these are
not known, only those on hosts of bad cables are named.
"""

from __future__ import annotations

import time

import numpy as np

from sar_agent.agent.current import Current
from sar_agent.agent.history import CABLE, Row
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report
from sar_agent.agent.parts import Parts
from sar_agent.agent.source_ages import SourceAge
from sar_agent.counters.lost_bandwidth import lost_of
from sar_agent.counters.window import CounterWindow
from sar_agent.fabric.model import F64
from sar_agent.jobs import JobMix
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.services.cable_watch.growth import Growth, GrowthReader
from sar_agent.services.cable_watch.page_box import cable_box, lost_by_job
from sar_agent.services.cable_watch.watch import CableEvent, CableWatch
from sar_agent.telemetry.watch_metrics import CABLE_KINDS

MOST_EVENTS = 100
"""Rows of the history for one pass; of more, one row says how many."""
SHOWN_JOBS = 20


class CableObserver:
    """Looks at each pass."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.metrics, watch = parts, parts.metrics, parts.config.watch
        self._problems = parts.problems[0]
        self.watch = CableWatch()
        self.reader = GrowthReader(watch.counters, watch.window_seconds)

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """Looks at the cables of what the pass saw."""
        if site is None:
            return
        parts = self.parts
        # A daemon's pass does not wait for a server; the next pass has what it said.
        self.reader.read(site.fabric, wait=not parts.pacing.patient)
        stale = self.reader.stale
        self._problems.problem("counters", stale, "counters of the cables are read again")
        growth = None if stale else self.reader.last
        if growth and growth.window and len(growth.window.sent) != site.fabric.channels:
            growth = Growth(growth.errors, None, growth.notes)
        dumps = self._dumps(current, site, growth.window if growth else None)
        events = self.watch.look(dumps, growth)
        self._record(events, site)
        lost = None
        if dumps.window:
            lost = lost_of(site.fabric, dumps.window, parts.config.watch.wait_bytes)
        of_jobs = lost_by_job(dumps, lost) if lost is not None else {}
        self._show(dumps, lost, of_jobs)
        if self.reader.source:
            parts.ages["counters"] = SourceAge(self.reader.at, stale)
            self.metrics.show_age("counters", self.reader.at, bool(stale))
        notes = growth.notes if growth else ()
        parts.boxes["cables"] = cable_box(
            self.watch.bad, dumps, lost, of_jobs, self.reader.source, self.reader.at, notes
        )

    def _dumps(
        self, current: Current, site: Observation, window: CounterWindow | None
    ) -> SiteDumps:
        found, measures = current.in_force, current.measures
        if found and measures and measures.traffic.fabric.digest == site.fabric.digest:
            traffic = measures.traffic
            return SiteDumps(
                traffic.fabric, site.running, traffic.mix, traffic.routes, window=window,
                predicted=traffic,
            )  # fmt: skip
        return SiteDumps(site.fabric, site.running, JobMix(()), _no_routes(site), window=window)

    def _record(self, events: list[CableEvent], site: Observation) -> None:
        for event in events:
            word = "bad" if event.bad else "well"
            self.metrics.cable_events.labels(event.cable.kind, word).inc()
        rows = [_row(event, site) for event in events[:MOST_EVENTS]]
        if (more := len(events) - len(rows)) > 0:
            rows[-1] = Row(**{**vars(rows[-1]), "why": f"and {more + 1} more cables changed"})
        if rows:
            log = self.parts.committer.decisions
            log.write(lambda: log.history.add(*rows))

    def _show(self, dumps: SiteDumps, lost: F64 | None, of_jobs: dict[str, float]) -> None:
        bad, metrics = self.watch.bad.values(), self.metrics
        for kind in CABLE_KINDS:
            of = [cable for cable in bad if cable.kind == kind]
            metrics.bad_cables.labels(kind).set(len(of))
            metrics.bad_cables_with_jobs.labels(kind).set(sum(bool(c.jobs) for c in of))
        hurt = {job for cable in bad if cable.kind != "unlike" for job in cable.jobs}
        metrics.bad_cable_jobs.set(len(hurt))
        known = np.nan_to_num(lost) if lost is not None else np.zeros(dumps.fabric.channels)
        rate = dumps.fabric.channel_rate.astype(np.float64)
        metrics.link_lost_bits_per_second_max.set(1e9 * known.max(initial=0.0))
        share = np.divide(known, rate, out=np.zeros_like(known), where=rate > 0)
        metrics.link_lost_ratio_max.set(share.max(initial=0.0))
        metrics.job_lost_bits_per_second_max.set(1e9 * max(of_jobs.values(), default=0.0))
        live, window = max(1, int(dumps.fabric.channel_up.sum())), dumps.window
        metrics.counters_read_ratio.set(window.known.sum() / live if window else 0.0)


def _no_routes(site: Observation) -> Routes:
    """Tables that lead nowhere."""
    fabric = site.fabric
    shape = (1, fabric.destinations, fabric.switches)
    return Routes("unknown", fabric.digest, np.full(shape, NO_ROUTE, np.uint8))


def _row(event: CableEvent, site: Observation) -> Row:
    cable = event.cable
    jobs = ", ".join(cable.jobs[:SHOWN_JOBS])
    more = len(cable.jobs) - SHOWN_JOBS
    hurt = f"jobs {jobs}{f' and {more} more' if more > 0 else ''}" if cable.jobs else ""
    return Row(
        at=time.time(),
        who="agent",
        reason="cable",
        why=f"{cable.sentence}" if event.bad else f"no longer: {cable.sentence}",
        result="bad" if event.bad else "well",
        message=hurt if event.bad else "",
        engine="",
        generation=0,
        jobs=len(site.mix.whole_jobs),
        seconds=0.0 if event.bad else time.time() - cable.since,
        entries_changed=None,
        kind=CABLE,
    )
