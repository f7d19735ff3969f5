"""Phase contention as defined, message by message, and what the fluid simulator takes."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.phase_contention import moments, phase_contention
from tests.examples import examples
from tests.worlds.networks import networks
from tests.worlds.oracles import path

NETWORKS = networks()


def ranks(fabric: Fabric, terminals: list[int]) -> list[int]:
    """In the order of hosts' names, numbers as numbers, and of their rails."""
    name = {t: re.split(r"(\d+)", fabric.terminal_host[t]) for t in terminals}
    parts = {t: [int(p) if i % 2 else p for i, p in enumerate(ps)] for t, ps in name.items()}
    return sorted(terminals, key=lambda t: (parts[t], fabric.terminal_rail[t]))


def contention(fabric: Fabric, mix: JobMix, routes: Routes, phases: int) -> list[float]:
    def messages(j: int, phase: int) -> list[tuple[int, int]]:
        order = ranks(fabric, mix.jobs[j].terminals.tolist())
        by = phase % (len(order) - 1) + 1
        return [(s, order[(i + by) % len(order)]) for i, s in enumerate(order)]

    def used(j: int, phase: int) -> Counter[int]:
        """Gbit/s over each channel."""
        speed = min(float(fabric.terminal_rate[t]) for t in mix.jobs[j].terminals)
        found: Counter[int] = Counter()
        for s, d in messages(j, phase):
            for c in path(fabric, routes, int(fabric.terminal_switch[s]), d) or []:
                found[c] += speed  # type: ignore[assignment]
        return found

    size = [len(job.terminals) for job in mix.jobs]
    total = [0.0] * len(size)
    times = moments(max(size) - 1, phases)
    for time in times:
        now = [math.floor(time * (n - 1)) for n in size]
        pairs = [(used(j, k), used(j, k + 1)) for j, k in enumerate(now)]
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


@examples(60)
@given(
    network=NETWORKS,
    phases=st.sampled_from([0, 2, 3, 32]),
    weights=st.lists(st.sampled_from([1.0, 0.25, 2.0]), min_size=8, max_size=8),
)
def test_it_is_as_defined(
    network: tuple[Fabric, JobMix], phases: int, weights: list[float]
) -> None:
    fabric, mix = network
    jobs = [replace(job, weight=weights[i % len(weights)]) for i, job in enumerate(mix.jobs)]
    mix = JobMix.of(jobs)
    routes = load_engine("minhop").route(fabric, mix, Options())
    found = phase_contention(fabric, mix, routes.egress[0], phases)
    expected = contention(fabric, mix, routes, phases) if mix.jobs else []
    assert found.tolist() == pytest.approx(expected)
