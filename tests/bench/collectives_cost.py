"""What it costs to serve collectives: entries for a gain, entries of running rings, seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import fmean
from unittest import mock

import numpy as np

from sar_agent.demand.collectives import COLLECTIVES, RING
from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, PreviousRoutes
from sar_agent.routing.collectives import serve
from sar_agent.routing.collectives.contention import contention_of
from sar_agent.routing.collectives.reasons import ring_entries_moved
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.routing.template import nearest_template, templates_of
from tests.bench.bench_fabrics import LARGEST, MIDDLE
from tests.bench.collectives import USUAL, bench_mix
from tests.bench.table import Table, goal

HUGE = "xgft:3;24,24,48;1,24,24"
BUSY = 0.85
STARTS = 4
PRICES = (1.0, 0.1, 0.01, 0.001)
GOALS = {MIDDLE: (2.0, 0.0), LARGEST: (10.0, 1.0), HUGE: (30.0, 0.0)}
"""CPU seconds from scratch, and after a job started; 0: none."""


def tables(full: bool) -> Iterator[Table]:
    """Starts, seconds, and the curve; the two larger fabrics with `--full`."""
    yield _starts()
    yield _seconds((MIDDLE, LARGEST, HUGE) if full else (MIDDLE,))
    yield _curve()


def _curve() -> Table:
    words = list(COLLECTIVES)
    note = "1,728 hosts: times over the best tables without jobs, by the price of an exception."
    table = Table("Gain over entries", ("mix", "price", *words, "mean", "entries"), note)
    fabric = load_fabric(MIDDLE)
    for name in USUAL:
        mix = bench_mix(fabric, name)
        collectives = serve.Collectives.of(fabric, mix)
        for price in PRICES:
            with mock.patch.object(serve, "PRICE", price):
                egress = SarPlus().route(fabric, mix, Options()).egress[0]
            ratios = collectives.times(egress) / collectives.usual
            off = int(np.count_nonzero(nearest_template(fabric, egress).egress != egress))
            usual = " (default)" if price == serve.PRICE else ""
            cells = (f"{ratio:.3f}" for ratio in ratios)
            table.add(name, f"{price:g}{usual}", *cells, f"{ratios.mean():.3f}", str(off))
            print(*table.rows[-1], flush=True)
    return table


def _without(fabric: Fabric, mix: JobMix, number: int) -> JobMix:
    """The mix without one job, and without others that would make more than `BUSY` hosts busy."""
    left, busy = [], 0
    for k, job in enumerate(mix.jobs):
        if k != number and busy + len(job.terminals) <= BUSY * fabric.terminals:
            busy += len(job.terminals)
            left.append(job)
    return JobMix.of(left)


def _starts() -> Table:
    columns = ("jobs", "the job's hosts", "busy", "entries of running rings moved",
               "all entries", "jobs whose ring meets", "CPU s")  # fmt: skip
    table = Table("A job starts", columns, f"1,728 hosts, up to {BUSY:.0%} of them busy.")
    fabric, moved = load_fabric(MIDDLE), []
    for name in ("mix:2", "mix:2,placed=tree"):
        mix = mix_of_spec(name, fabric)
        for number in np.linspace(0, len(mix.jobs) - 1, STARTS).astype(int).tolist():
            before, job = _without(fabric, mix, number), mix.jobs[number]
            after = JobMix.of([*before.jobs, job])
            engine = SarPlus()
            old = engine.route(fabric, before, Options())
            begin = time.process_time()
            new = engine.reroute(PreviousRoutes(fabric, before, old), fabric, after, Options())
            seconds = time.process_time() - begin
            entries = old.egress[0], new.egress[0]
            moved.append(ring_entries_moved(fabric, before, after, *entries))
            collectives = serve.Collectives.of(fabric, after)
            contention = contention_of(fabric, collectives.width, collectives.demand, entries[1])
            meets = float(np.mean(contention[list(COLLECTIVES).index(RING)] > 1 + 1e-6))
            busy = sum(len(each.terminals) for each in after.jobs) / fabric.terminals
            table.add(name, str(len(job.terminals)), f"{busy:.0%}", str(moved[-1]),
                      str(np.count_nonzero(entries[0] != entries[1])), f"{meets:.0%}",
                      f"{seconds:.2f}")  # fmt: skip
            print(*table.rows[-1], flush=True)
    table.goals = [
        goal("entries of running rings that move at a start, mean", fmean(moved), 10, "")
    ]
    return table


def _seconds(fabrics: tuple[str, ...]) -> Table:
    columns = ("hosts", "jobs", "scratch: CPU s", "wall", "a job starts: CPU s", "wall", "load")
    note = "After a first run that compiled the kernels and made the template; one run each."
    table = Table("Seconds", columns, note)
    small = load_fabric("xgft:2;4,4;1,4")
    _timed(small, mix_of_spec("mix:1", small))
    for spec in fabrics:
        fabric = load_fabric(spec)
        templates_of(fabric)
        mix = mix_of_spec("mix:1", fabric)
        scratch, change = _timed(fabric, mix)
        table.add(f"{fabric.terminals:,}", str(len(mix.jobs)), *scratch, *change,
                  f"{os.getloadavg()[0]:.1f}")  # fmt: skip
        for what, (cpu, _), most in zip(("from scratch", "a job starts"), (scratch, change),
                                        GOALS[spec], strict=True):  # fmt: skip
            if most:
                name = f"{fabric.terminals:,} hosts, {what}, CPU"
                table.goals.append(goal(name, float(cpu), most, "s"))
        print(*table.rows[-1], flush=True)
    return table


def _timed(fabric: Fabric, mix: JobMix) -> tuple[tuple[str, str], tuple[str, str]]:
    """(CPU, wall) from scratch, and after a job of the middle started."""
    before = JobMix.of(job for k, job in enumerate(mix.jobs) if k != len(mix.jobs) // 2)
    engine = SarPlus()
    begin = time.process_time(), time.perf_counter()
    old = engine.route(fabric, before, Options())
    middle = time.process_time(), time.perf_counter()
    engine.reroute(PreviousRoutes(fabric, before, old), fabric, mix, Options())
    end = time.process_time(), time.perf_counter()
    first = tuple(f"{b - a:.1f}" for a, b in zip(begin, middle, strict=True))
    second = tuple(f"{b - a:.2f}" for a, b in zip(middle, end, strict=True))
    return (first[0], first[1]), (second[0], second[1])
