"""Dmodc against its formulas: D-mod-k on whole trees, a slow oracle on degraded ones."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.tree import tree_levels
from sar_agent.fabric.xgft import Xgft
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.dmodc import dividers, host_numbers
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.updn import tree_order
from tests.examples import examples
from tests.worlds.fabrics import fabric_of, records
from tests.worlds.oracles import path
from tests.worlds.pgft import Pgft, pgft_fabric

NOBODY = JobMix(())


def dmodc(fabric: Fabric) -> Routes:
    return load_engine("dmodc").route(fabric, NOBODY, Options())


@st.composite
def pgfts(draw: st.DrawFn) -> Pgft:
    height = draw(st.integers(2, 4))
    m = tuple(draw(st.integers(2, {2: 5, 3: 3, 4: 2}[height])) for _ in range(height))
    w = (1, *(draw(st.integers(1, 3)) for _ in range(height - 1)))
    return Pgft(Xgft(m, w), tuple(draw(st.integers(1, 3)) for _ in range(height - 1)))


@examples(40)
@given(shape=pgfts())
def test_on_a_whole_pgft_the_way_up_is_d_mod_k(shape: Pgft) -> None:
    fabric, tree = pgft_fabric(shape), shape.tree
    routes, level = dmodc(fabric), tree_levels(fabric) + 1
    assert check_routes(fabric, routes).passed
    assert host_numbers(
        fabric, graph_of(fabric), tree_order(fabric, graph_of(fabric))
    ).tolist() == [*range(fabric.terminals)]
    for s in range(fabric.switches):
        for d in range(fabric.terminals):
            way = path(fabric, routes, s, d)
            if not way or level[fabric.channel_target[way[0]]] < level[s]:
                continue
            at = int(level[s])
            up, cable = shape.parent_port(at, d)
            below = tree.m[at - 1] * (shape.p[at - 2] if at > 1 else 1)
            assert fabric.channel_port[way[0]] == below + up * shape.p[at - 1] + cable + 1


@examples(40)
@given(shape=pgfts())
def test_on_a_whole_pgft_each_channel_down_serves_hosts_of_one_remainder(shape: Pgft) -> None:
    """As D-mod-k: what comes down a cable is what its other direction would take up."""
    fabric = pgft_fabric(shape)
    routes, divider = dmodc(fabric), dividers(fabric)
    above = tree_levels(fabric)
    for s in range(fabric.switches):
        for d in range(fabric.terminals):
            way = path(fabric, routes, s, d)
            if not way or above[fabric.channel_target[way[0]]] > above[s]:
                continue
            level = int(above[s])
            cable = d // int(divider[s]) % shape.p[level - 1]
            assert (fabric.channel_port[way[0]] - 1) % shape.p[level - 1] == cable


def degraded(shape: Pgft, random: Random) -> Fabric:
    whole = pgft_fabric(shape)
    return whole.with_links_down(
        random.sample(range(whole.channels), random.randint(0, whole.channels // 5))
    )


@examples(80)
@given(shape=pgfts(), random=st.randoms(use_true_random=False))
def test_on_degraded_trees_it_is_its_formula(shape: Pgft, random: Random) -> None:
    """Connected where up then down connects all leaves, refused elsewhere; one lane is enough."""
    fabric = degraded(shape, random)
    above = connections(fabric)
    joined = above is not None and all(
        above[1][int(a)].get(int(b)) is not None for a in fabric.leaves for b in fabric.leaves
    )
    try:
        routes = dmodc(fabric)
    except Unserved as refusal:
        assert not joined and fabric.name in str(refusal)
        return
    assert joined and above is not None
    # A switch that lost all cables has no route; the check then stops before it looks for loops.
    assert check_routes(fabric, routes).passed or not is_connected(fabric)
    falls, distance = above
    graph = graph_of(fabric)
    number = host_numbers(fabric, graph, tree_order(fabric, graph))
    divider, level = dividers(fabric), tree_levels(fabric)
    for d in np.flatnonzero(fabric.is_host_port).tolist():
        leaf = int(fabric.terminal_switch[d])
        for s in carriers(fabric, routes, d) - {leaf}:
            cables = defaultdict(list)
            for c in range(fabric.channel_offset[s], fabric.channel_offset[s + 1]):
                v = int(fabric.channel_target[c])
                near = falls[v] if leaf in falls[s] else distance[v]
                rises = distance[s][leaf] - 1 == near.get(leaf)
                upward = level[v] > level[s]
                if fabric.channel_up[c] and rises and upward != (leaf in falls[s]):
                    cables[int(fabric.switch_guid[v])].append(int(fabric.channel_port[c]))
            turn = int(number[d]) // int(divider[s])
            chosen = cables[sorted(cables)[turn % len(cables)]]
            port = chosen[turn // len(cables) % len(chosen)]
            assert routes.egress[0, d, s] == port


def carriers(fabric: Fabric, routes: Routes, destination: int) -> set[int]:
    """The switches that hosts' paths pass; entries of others may be chosen to close no loop."""
    ways = [path(fabric, routes, leaf, destination) for leaf in fabric.leaves.tolist()]
    assert None not in ways
    return {int(fabric.channel_source[c]) for way in ways for c in way or []}


Hops = dict[int, dict[int, int]]


def connections(fabric: Fabric) -> tuple[Hops, Hops] | None:
    """For each switch: hops to switches by going down only, and by going down where that is
    possible and up elsewhere; None where the fabric is no tree."""
    try:
        level = tree_levels(fabric)
    except Unserved:
        return None
    falls: Hops = {s: {s: 0} for s in range(fabric.switches)}
    live = np.flatnonzero(fabric.channel_up)
    pairs = [(int(fabric.channel_source[c]), int(fabric.channel_target[c])) for c in live]
    for a, b in sorted(pairs, key=lambda pair: level[pair[0]]):
        if level[a] > level[b]:
            for leaf, hops in falls[b].items():
                falls[a][leaf] = min(hops + 1, falls[a].get(leaf, 99))
    every: Hops = {s: dict(falls[s]) for s in falls}
    for a, b in sorted(pairs, key=lambda pair: -int(level[pair[0]])):
        if level[a] < level[b]:
            for leaf, hops in every[b].items():
                if leaf not in falls[a]:
                    every[a][leaf] = min(hops + 1, every[a].get(leaf, 99))
    return falls, every


@examples(40)
@given(nodes=records())
def test_odd_fabrics_are_routed_or_refused(nodes: list) -> None:
    fabric = fabric_of(nodes)
    try:
        routes = dmodc(fabric)
    except Unserved:
        return
    if is_connected(fabric) and fabric.is_host_port.any():
        assert check_routes(fabric, routes).unreachable_pairs == 0
