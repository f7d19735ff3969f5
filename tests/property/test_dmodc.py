"""Dmodc against its formulas: D-mod-k on whole trees, a slow oracle on degraded ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.generate import host_adder, switch_guid
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


@dataclass(frozen=True)
class Pgft:
    """PGFT(h; m; w; p): a switch of level l has p[l - 1] cables to each parent."""

    tree: Xgft
    p: tuple[int, ...]

    def parent_port(self, level: int, destination: int) -> tuple[int, int]:
        """D-mod-k of a switch of `level` (Zahavi, 2010): the parent and the cable towards it."""
        w, p = self.tree.w[level], self.p[level - 1]
        port = destination // prod(self.tree.w[:level]) % (w * p)
        return port % w, port // w


def pgft_fabric(shape: Pgft) -> Fabric:
    """Switch `S1-0`, … (level, index); hosts in the order of the leaves."""
    tree, builder = shape.tree, FabricBuilder("pgft")
    nodes = [(level, i) for level in range(1, tree.height + 1) for i in range(tree.nodes(level))]
    cables = [
        (level, index, up, cable)
        for level in range(1, tree.height)
        for index in range(tree.nodes(level))
        for up in range(tree.w[level])
        for cable in range(shape.p[level - 1])
    ]
    hosts = range(tree.nodes(0))
    number = {node: i for i, node in enumerate(nodes)}
    for level, index in nodes:
        builder.add_switch(switch_guid(index, level), f"S{level}-{index}", 40)
    for level, index, up, cable in cables:
        parent = level + 1, tree.parent(level, index, up)
        below = tree.child_digit(level, index) * shape.p[level - 1] + cable + 1
        above = tree.m[level - 1] * (shape.p[level - 2] if level > 1 else 1)
        above += up * shape.p[level - 1] + cable + 1
        builder.add_link(number[level, index], above, number[parent], below)
    add_host = host_adder(builder, len(hosts))
    for host in hosts:
        add_host(host, [(number[1, tree.parent(0, host, 0)], tree.child_digit(0, host) + 1)])
    return builder.build()


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
def test_on_a_whole_pgft_it_is_d_mod_k(shape: Pgft) -> None:
    """Up by the formula; what comes down a cable is what its other direction would take up."""
    fabric, tree = pgft_fabric(shape), shape.tree
    routes, level, divider = dmodc(fabric), tree_levels(fabric) + 1, dividers(fabric)
    assert check_routes(fabric, routes).passed
    assert host_numbers(
        fabric, graph_of(fabric), tree_order(fabric, graph_of(fabric))
    ).tolist() == [*range(fabric.terminals)]
    for s in range(fabric.switches):
        for d in range(fabric.terminals):
            way = path(fabric, routes, s, d)
            if not way:
                continue
            at = int(level[s])
            if level[fabric.channel_target[way[0]]] < at:
                cable = d // int(divider[s]) % shape.p[at - 2]
                assert (fabric.channel_port[way[0]] - 1) % shape.p[at - 2] == cable
                continue
            up, cable = shape.parent_port(at, d)
            below = tree.m[at - 1] * (shape.p[at - 2] if at > 1 else 1)
            assert fabric.channel_port[way[0]] == below + up * shape.p[at - 1] + cable + 1


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
