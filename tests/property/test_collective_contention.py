"""The contention of collectives as defined, message by message."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, RING, moments
from sar_agent.demand.patterns import rank_phases
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.quality.contention_bounds import contention_bounds
from sar_agent.quality.ring_messages import ring_messages
from sar_agent.routing import Options, Routes, load_engine
from tests.examples import examples
from tests.worlds.networks import networks
from tests.worlds.oracles import live_graph, path

NETWORKS = networks()
EIGHT = st.lists(st.integers(0, 2), min_size=8, max_size=8)
WEIGHTS = st.lists(st.sampled_from([1.0, 0.25, 2.0]), min_size=8, max_size=8)


def two_rates(fabric: Fabric, drawn: list[int]) -> Fabric:
    """Some cables twice as fast as the others."""
    cable = np.minimum(np.arange(fabric.channels), fabric.channel_reverse)
    rate = np.where(np.array(drawn)[cable % 8] > 1, 200, 100)
    return replace(fabric, channel_rate=rate.astype(np.float32))


def random_paths(fabric: Fabric, seed: int) -> Routes:
    """The engine minhop's tables, each entry any first hop of a shortest path."""
    random = np.random.default_rng(seed)
    routes = load_engine("minhop").route(fabric, JobMix(()), Options())
    tables = routes.egress.copy()
    graph = nx.MultiDiGraph(live_graph(fabric))
    far = dict(nx.all_pairs_shortest_path_length(graph))
    for d, root in enumerate(fabric.destination_switch.tolist()):
        for s in range(fabric.switches):
            out = range(fabric.channel_offset[s], fabric.channel_offset[s + 1])
            ports = [
                fabric.channel_port[c]
                for c in out
                if fabric.channel_up[c]
                and root in far[s]
                and far[int(fabric.channel_target[c])].get(root, math.inf) < far[s][root]
            ]
            if ports:
                tables[0, d, s] = random.choice(ports)
    return replace(routes, egress=tables)


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
    weights=WEIGHTS,
    declared=st.lists(st.sampled_from([None, "ring", "halo2d", "shift:1"]), min_size=8, max_size=8),
    drawn=EIGHT,
)
def test_it_is_as_defined(
    network: tuple[Fabric, JobMix],
    collective: str,
    most: int,
    weights: list[float],
    declared: list[str | None],
    drawn: list[int],
) -> None:
    fabric, mix = two_rates(network[0], drawn), network[1]
    jobs = [
        replace(job, weight=weights[i % 8], traffic=declared[i % 8])
        for i, job in enumerate(mix.jobs)
    ]
    mix = JobMix.of(jobs)
    routes = random_paths(fabric, sum(drawn))
    found = collective_contention(fabric, mix, routes.egress[0], collective, most)
    expected = contention(fabric, mix, routes, collective, most) if mix.jobs else []
    assert found.tolist() == pytest.approx(expected)


@examples(60)
@given(network=NETWORKS, weights=WEIGHTS)
def test_the_messages_that_are_named_are_those_of_the_measure(
    network: tuple[Fabric, JobMix], weights: list[float]
) -> None:
    fabric, mix = network
    mix = JobMix.of(replace(job, weight=weights[i % 8]) for i, job in enumerate(mix.jobs))
    routes = load_engine("minhop").route(fabric, mix, Options())
    rings = ring_messages(fabric, mix, routes)
    found = collective_contention(fabric, mix, routes.egress[0], RING)
    for j, value in enumerate(found.tolist()):
        named = rings.time[:, rings.part == j].max(initial=1.0)
        assert named == pytest.approx(value)


@examples(100)
@given(
    network=NETWORKS,
    collective=st.sampled_from([word for word in COLLECTIVES if word != AT_ONCE]),
    weights=WEIGHTS,
    drawn=EIGHT,
    seed=st.integers(0, 99),
)
def test_no_tables_are_below_the_bounds(
    network: tuple[Fabric, JobMix],
    collective: str,
    weights: list[float],
    drawn: list[int],
    seed: int,
) -> None:
    fabric, mix = two_rates(network[0], drawn), network[1]
    mix = JobMix.of(replace(job, weight=weights[i % 8]) for i, job in enumerate(mix.jobs))
    tables = random_paths(fabric, seed).egress[0]
    bounds = contention_bounds(fabric, mix, collective)
    found = collective_contention(fabric, mix, tables, collective)
    assert (bounds.each >= 1).all() and (bounds.each <= found * (1 + 1e-9)).all()
    assert bounds.worst <= found.max(initial=1.0) * (1 + 1e-9)
