"""The contention of collectives as defined, message by message."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES
from sar_agent.demand.patterns import rank_phases
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.quality.collective_contention import (
    collective_contention,
    contention_bounds,
    moments,
)
from sar_agent.routing import Options, Routes, load_engine
from tests.examples import examples
from tests.worlds.networks import networks
from tests.worlds.oracles import path

NETWORKS = networks()


def ranks(fabric: Fabric, terminals: list[int]) -> list[int]:
    """In the order of hosts' names, numbers as numbers, and of their rails."""
    name = {t: re.split(r"(\d+)", fabric.terminal_host[t]) for t in terminals}
    parts = {t: [int(p) if i % 2 else p for i, p in enumerate(ps)] for t, ps in name.items()}
    return sorted(terminals, key=lambda t: (parts[t], fabric.terminal_rail[t]))


def phases_of(job: Job, collective: str) -> list[tuple[list[tuple[int, int]], float]]:
    """Pairs of ranks and their weight."""
    n = len(job.terminals)
    word = job.declared or collective
    if word == "pairwise":
        return [([(i, (i + k) % n) for i in range(n)], 1.0) for k in range(1, n)]
    return [
        (list(zip(phase.source.tolist(), phase.destination.tolist(), strict=True)), phase.weight)
        for phase in rank_phases(word, n)
        if len(phase.source)
    ]


def contention(
    fabric: Fabric, mix: JobMix, routes: Routes, collective: str, most: int
) -> list[float]:
    every = [phases_of(job, collective) for job in mix.jobs]

    def used(j: int, k: int) -> Counter[int]:
        """Gbit/s over each channel."""
        order = ranks(fabric, mix.jobs[j].terminals.tolist())
        speed = min(float(fabric.terminal_rate[t]) for t in mix.jobs[j].terminals)
        pairs, weight = every[j][k % len(every[j])]
        found: Counter[int] = Counter()
        for a, b in pairs:
            leaf = int(fabric.terminal_switch[order[a]])
            for c in path(fabric, routes, leaf, order[b]) or []:
                found[c] += speed * weight  # type: ignore[assignment]
        return found

    total = [0.0] * len(every)
    times = moments(max(len(phases) for phases in every), most)
    for time in times:
        now = [math.floor(time * len(phases)) for phases in every]
        pairs = [
            (used(j, k), used(j, k + 1)) if every[j] else (Counter(), Counter())
            for j, k in enumerate(now)
        ]
        for j, (own, _) in enumerate(pairs):
            worst = 1.0
            for c, speed in own.items():
                others = sum(
                    mix.jobs[i].weight * (a[c] + b[c]) / 2
                    for i, (a, b) in enumerate(pairs)
                    if i != j
                )
                worst = max(worst, (speed + others) / float(fabric.channel_rate[c]))
            total[j] += worst
    return [value / len(times) for value in total]


@examples(120)
@given(
    network=NETWORKS,
    collective=st.sampled_from([word for word in COLLECTIVES if word != AT_ONCE]),
    most=st.sampled_from([0, 2, 3, 32]),
    weights=st.lists(st.sampled_from([1.0, 0.25, 2.0]), min_size=8, max_size=8),
    declared=st.lists(st.sampled_from([None, "ring", "halo2d", "shift:1"]), min_size=8, max_size=8),
)
def test_it_is_as_defined(
    network: tuple[Fabric, JobMix],
    collective: str,
    most: int,
    weights: list[float],
    declared: list[str | None],
) -> None:
    fabric, mix = network
    jobs = [
        replace(job, weight=weights[i % 8], traffic=declared[i % 8])
        for i, job in enumerate(mix.jobs)
    ]
    mix = JobMix.of(jobs)
    routes = load_engine("minhop").route(fabric, mix, Options())
    found = collective_contention(fabric, mix, routes.egress[0], collective, most)
    expected = contention(fabric, mix, routes, collective, most) if mix.jobs else []
    assert found.tolist() == pytest.approx(expected)


@examples(60)
@given(network=NETWORKS, collective=st.sampled_from(["ring", "halo2d", "bruck"]))
def test_no_tables_bring_the_worst_job_below_its_bound(
    network: tuple[Fabric, JobMix], collective: str
) -> None:
    """A job may be below its own bound where another one is above it."""
    fabric, mix = network
    if not mix.jobs:
        return
    bound = contention_bounds(fabric, mix, collective)
    for engine in ("minhop", "sar-plus"):
        routes = load_engine(engine).route(fabric, mix, Options())
        found = collective_contention(fabric, mix, routes.egress[0], collective)
        assert (bound >= 1).all() and bound.max() <= found.max() * (1 + 1e-9)
