"""Remembers of each job what it met under the tables in force, the planned ones and the baseline.

A pass stands for the time since the pass before. A job's row of the day is kept here while it runs;
it is written once the job has ended, every `WRITE_SECONDS`, and at the end of each pass of `once`.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from datetime import date

import numpy as np

from sar_agent.agent.current import Current
from sar_agent.agent.job_days import MOST_LEAVES, MOST_SHARED, JobDay, JobDays, Tables
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report
from sar_agent.agent.parts import Parts
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import Measures
from sar_agent.quality.channel_traffic import I64, Traffic
from sar_agent.quality.worst_links import users_of, worst_channels

WRITE_SECONDS = 300.0
LONGEST_PASS_SECONDS = 900.0
"""Seconds that a pass may stand for, where passes are not configured to be farther apart: the agent
may have been stopped since the pass before."""
MOST_WAITING = 10_000
"""Rows of ended jobs that wait for a disk that takes none."""


class JobDaysWatch:
    """Keeps the rows of the running jobs and writes them."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.table = parts, JobDays(parts.config.agent.state_dir)
        self.log = parts.committer.decisions
        self.by_load = parts.config.agent.objective == "load"
        self._rows: dict[str, JobDay] = {}
        """Of the running jobs, by their ids."""
        self._ended: list[JobDay] = []
        self._at: float | None = None
        """When the last pass was, by `time.monotonic`."""
        self._written = time.monotonic()
        self._worst: tuple[Traffic | None, I64] = None, np.empty(0, np.int64)
        """The traffic in force that was looked at last, and each job's worst channel."""

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """Adds the pass to the rows of the running jobs."""
        if site is None:
            return
        self._watch(current, site)
        daemon = self.parts.pacing.patient
        due = not daemon or time.monotonic() - self._written >= WRITE_SECONDS
        rows = [*self._ended, *self._rows.values()] if due else self._ended
        if rows and self.log.write(lambda: self.table.keep(rows)):
            self._ended = []
            self._written = time.monotonic() if due else self._written
        self._ended = self._ended[-MOST_WAITING:]

    def _watch(self, current: Current, site: Observation) -> None:
        now, today = time.time(), date.today().toordinal()
        passed = self._seconds(now, today)
        ours = site.in_force is not None and site.in_force.status.ours
        running = {r.id: r for r in site.running if len(r.hosts) > 1}
        for id, row in list(self._rows.items()):
            record = running.get(id)
            if record is None or (row.day, row.start, row.ours) != (today, _start(record), ours):
                self._ended.append(self._rows.pop(id))
        for id, record in running.items():
            row = self._rows.get(id) or self._row(today, record, ours, site.fabric, now)
            row.last, self._rows[id] = now, row
        # A job that began since the pass before was there for that long only.
        lasted = {
            id: min(passed, max(0.0, now - row.start)) if row.start else passed
            for id, row in self._rows.items()
        }
        for id, seconds in lasted.items():
            self._rows[id].seconds += seconds
        for tables, found in self._measured(current):
            if found and found.traffic.fabric.digest == site.fabric.digest:
                for id, parts in _jobs_of(site, found.traffic).items():
                    at_once = max(1.0, float(found.traffic.job_load[parts].max()))
                    phases = float(found.traffic.phase_contention[parts].max())
                    self._rows[id].add_time(tables, lasted[id], at_once, phases)
                    if tables == "baseline":
                        self._rows[id].baseline = found.traffic.routes.engine
                if tables == "in_force":
                    self._note_worst(site, found.traffic, now)

    def _measured(self, current: Current) -> tuple[tuple[Tables, Measures | None], ...]:
        return (
            ("in_force", current.measures),
            ("planned", current.planned.measured if current.planned else None),
            ("baseline", self.parts.baseline.measured),
        )

    def _note_worst(self, site: Observation, traffic: Traffic, now: float) -> None:
        if self._worst[0] is not traffic:
            self._worst = traffic, worst_channels(traffic, by_load=self.by_load)
        of_jobs = _jobs_of(site, traffic)
        names = {j: id for id, parts in of_jobs.items() for j in parts}
        value = traffic.job_load if self.by_load else traffic.job_efi
        for id, parts in of_jobs.items():
            j = max(parts, key=lambda part: (value[part], -part))  # of rails, the worst one
            row, c = self._rows[id], int(self._worst[1][j])
            if c < 0:
                continue
            if row.worst_load is None or traffic.load[c] > row.worst_load:
                users = (names.get(i, id) for i, _ in users_of(traffic, c))
                others = [other for other in dict.fromkeys(users) if other != id]
                row.worst_load, row.worst_at = float(traffic.load[c]), now
                row.worst_link = traffic.fabric.channel_name(c)
                row.shared, row.shared_count = others[:MOST_SHARED], len(others)

    def _row(self, today: int, record: JobRecord, ours: bool, fabric: Fabric, now: float) -> JobDay:
        """The job's row of today, from the table where an agent before has begun it."""
        row = JobDay(today, record.id, _start(record), ours, first=now)
        with suppress(SarError):  # writing says it, and mends what is damaged
            row = self.table.get(today, record.id, _start(record), ours) or row
        leaves = Counter(
            leaf
            for host in record.hosts
            for leaf in {fabric.terminal_switch[t] for t in fabric.job_ports.get(host, ())}
        )
        row.user, row.hosts, row.leaf_count = record.user, len(record.hosts), len(leaves)
        most = leaves.most_common(MOST_LEAVES)
        row.leaves = {fabric.switch_name[leaf]: hosts for leaf, hosts in most}
        return row

    def _seconds(self, now: float, today: int) -> float:
        """The time since the pass before."""
        last, self._at = self._at, time.monotonic()
        passed = 0.0 if last is None else self._at - last
        if last is None:
            with suppress(SarError):
                passed = now - (self.table.newest(today) or now)
        return min(
            max(0.0, passed),
            max(LONGEST_PASS_SECONDS, 2 * self.parts.config.agent.interval_seconds),
        )


def _start(record: JobRecord) -> int:
    return int(record.start or 0)


def _jobs_of(site: Observation, traffic: Traffic) -> dict[str, list[int]]:
    """The jobs of now, by id, with the indices of their parts in the traffic's mix; `traffic` may
    have been measured when other jobs ran on the same hosts."""
    index = {job.key: j for j, job in enumerate(traffic.mix.jobs)}
    found: dict[str, list[int]] = {}
    for job in site.mix.jobs:
        if job.key in index:
            found.setdefault(job.id, []).append(index[job.key])
    return found
