"""What is proved step by step equals what is proved at once, over random histories."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sar_agent.check import check_changed, check_routes
from sar_agent.check.proof import prove, prove_change
from sar_agent.check.transition import transition_safe
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.measure.traffic import traffic_of
from sar_agent.routing import Routes
from tests.property.histories import SHAPES, history
from tests.property.networks import networks

Shape = tuple[int, int]
Network = tuple[Fabric, JobMix]


@settings(deadline=None, max_examples=60)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_the_verdict_of_a_change_is_that_of_the_whole(
    network: Network, random: Random, of: Shape
) -> None:
    before = None
    for fabric, routes in history(network[0], random, 8, of):
        verdict, proved = check_changed(fabric, routes, before)
        assert verdict == check_routes(fabric, routes)
        assert (proved is not None) == verdict.passed
        before = proved or before


@pytest.mark.parametrize("few", [0, 1, 99])
@settings(deadline=None, max_examples=30)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_dependencies_are_counted_exactly(
    few: int, network: Network, random: Random, of: Shape
) -> None:
    before = None
    for fabric, routes in history(network[0], random, 8, of):
        whole = prove(fabric, routes)
        step = prove_change(before, fabric, routes, few) if before else whole
        assert whole or not step
        if step and whole:
            assert np.array_equal(step.counts, whole.counts)
        before = step or before


@settings(deadline=None, max_examples=60)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_a_transition_is_safe_if_no_mixture_can_close_a_loop(
    network: Network, random: Random, of: Shape
) -> None:
    before: tuple[Fabric, Routes] | None = None
    for fabric, routes in history(network[0], random, 4, of):
        new = prove(fabric, routes)
        if new is None:
            continue
        if before and (old := prove(*before)):
            assert transition_safe(old, new) == mixture_safe(before, (fabric, routes))
        before = fabric, routes


@settings(deadline=None, max_examples=40)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_traffic_after_a_change_is_bit_for_bit_that_of_the_whole(
    network: Network, random: Random, of: Shape
) -> None:
    jobs, traffic = network[1].jobs, None
    for fabric, routes in history(network[0], random, 8, of):
        some = [job for job in jobs if random.random() < 0.8]
        if some and random.random() < 0.3:
            some[0] = make_job("heavy", some[0].terminals, weight=random.random())
        mix = JobMix.of(some)
        traffic, whole = traffic_of(fabric, mix, routes, traffic), traffic_of(fabric, mix, routes)
        for name in ("efi", "load", "job_efi", "job_load", "job_links", "job_switches"):
            assert getattr(traffic, name).tobytes() == getattr(whole, name).tobytes(), name
        assert traffic.efi.tolist() == counted(fabric, mix, routes)


def counted(fabric: Fabric, mix: JobMix, routes: Routes) -> list[int]:
    """Effective EFI pair by pair, as far as packets come in tables that may be broken."""
    found = [0] * fabric.channels
    for job in mix.jobs:
        for source in job.terminals:
            for destination in job.terminals:
                v, root = int(fabric.terminal_switch[source]), fabric.terminal_switch[destination]
                for _ in range(fabric.switches):
                    c = int(fabric.channel_by_port[v, routes.egress[0, destination, v]])
                    if v == root or c < 0:
                        break
                    found[c] += 1
                    v = int(fabric.channel_target[c])
    return found


def dependencies(fabric: Fabric, routes: Routes) -> list[set[tuple[int, int]]]:
    """Pairs of channels between hosts, for each lane."""
    found: list[set[tuple[int, int]]] = [set() for _ in range(routes.virtual_lanes)]
    for o in range(len(routes.egress)):
        for d in np.flatnonzero(fabric.is_host_port):
            for s in np.flatnonzero(fabric.terminals_at):
                lane = 0 if routes.service_level is None else routes.service_level[o, d, s]
                way, v = [], s
                while v != fabric.destination_switch[d]:
                    way.append(int(fabric.channel_by_port[v, routes.egress[o, d, v]]))
                    v = fabric.channel_target[way[-1]]
                found[lane].update(pairwise(way))
    return found


def mixture_safe(before: tuple[Fabric, Routes], after: tuple[Fabric, Routes]) -> bool:
    """By networkx: old and new entries as one graph for each destination, and their dependencies
    as one graph for each lane."""
    fabric = after[0]
    lanes = [nx.DiGraph() for _ in range(after[1].virtual_lanes)]
    for where, routes in (before, after):
        for lane, edges in enumerate(dependencies(where, routes)):
            same = fabric.channel_up & (fabric.channel_target == where.channel_target)
            live = ((a, b) for a, b in edges if same[a] and fabric.channel_up[b])
            lanes[lane].add_edges_from(live)
    for o in range(len(after[1].egress)):
        for d in range(fabric.destinations):
            host = d < fabric.terminals
            if not (fabric.terminal_up[d] if host else fabric.switch_up[d - fabric.terminals]):
                continue
            root = int(fabric.destination_switch[d])
            ways = nx.MultiDiGraph()
            for _, routes in (before, after):
                for s in range(fabric.switches):
                    c = int(fabric.channel_by_port[s, routes.egress[o, d, s]])
                    if c >= 0 and fabric.channel_up[c]:
                        ways.add_edge(s, int(fabric.channel_target[c]), c)
            if not nx.is_directed_acyclic_graph(ways):
                return False
            if not (host and fabric.is_host_port[d]):
                continue
            for where, _ in (before, after):
                if not where.is_host_port[d]:
                    continue
                for s in np.flatnonzero(where.terminals_at):
                    for _, routes in (before, after):
                        level = routes.service_level
                        lane = 0 if level is None else int(level[o, d, s])
                        passed = nx.descendants(ways, s) | {s} if s in ways else set()
                        for _, v, c1 in ways.out_edges(passed, keys=True):
                            if v != root:
                                for _, _, c2 in ways.out_edges(v, keys=True):
                                    lanes[lane].add_edge(c1, c2)
    return all(map(nx.is_directed_acyclic_graph, lanes))
