"""The phases of the five-phase update with many subscribers: how long does each take?

One process contains all subscribers, each with its own connections (a model of queue pairs). The
first receives OpenSM's notices and forwards them to the others, as in the ranks of a job."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sar_lab.live.process import wait_until
from tests.bench.table import Table, goal
from tests.bench.timing import Times
from tests.live.helpers.phased import Phased, phased

SUBSCRIBERS = 100
ROUNDS = 6
GOAL = 2.0
JOBS = (("n[001,005,009]",), ("n[001,005,009]", "n[003,007,011,015]"))


def tables(full: bool) -> Iterator[Table]:
    """One table: 100 subscribers, 16 hosts."""
    with (
        tempfile.TemporaryDirectory(prefix="sar-bench-") as folder,
        phased(Path(folder), deadline_seconds=30, lease_seconds=30) as site,
    ):
        yield _phases(site)


def _phases(site: Phased) -> Table:
    site.jobs(*JOBS[0])
    site.start(generations_kept=100)
    generation = site.wait_installed().generation_in_force
    site.subscribe(1, f"count={SUBSCRIBERS}")
    site.wait_subscribed(SUBSCRIBERS)
    wait_until(lambda: site.asked()["sheltered"] == 0, 60)
    times = {phase: Times() for phase in ("unpath", "install", "repath", "besides the install")}
    late = 0
    for n in range(ROUNDS):
        time.sleep(1)
        site.jobs(*JOBS[1 - n % 2])
        site.wait_installed(generation)
        row = site.rows()[0]
        generation = row.generation
        assert row.phases is not None and row.phases["subscribers"] == SUBSCRIBERS
        late += row.phases["late"]
        seconds = row.phases["seconds"]
        for phase, value in seconds.items():
            times[phase].append(value)
        times["besides the install"].append(seconds["unpath"] + seconds["repath"])
    table = Table(
        f"Five-phase update, {SUBSCRIBERS} subscribers on loopback",
        ("phase", "seconds: median (min … max)"),
        f"{ROUNDS} updates on 16 hosts, subscribers in one process, over munge and a Unix socket; "
        "one of them receives OpenSM's notices and forwards them; "
        f"late in all updates together: {late}. `install` is the load with its reading back.",
    )
    for phase, found in times.items():
        table.add(phase, found.show())
    worst = max(times["besides the install"])
    table.goals.append(goal("slowest besides the install", worst, GOAL, "s"))
    return table
