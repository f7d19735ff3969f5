"""updn and ftree: every pair, in one lane, by shortest legal paths."""

from __future__ import annotations

import re
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from sar_agent.check import check_routes
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.model import I64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.even_updown import around, legal_orders, legal_tables
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.turn_order import orders_by_height
from sar_agent.routing.updn import updn_order
from sar_agent.routing.updown_paths import Orientation, orient
from tests.examples import examples, share
from tests.worlds.networks import fabrics
from tests.worlds.oracles import path

NOBODY = JobMix(())
TREES = ("xgft:2;3,4;1,3", "xgft:3;2,3,3;1,2,2", "xgft:3;3,2,4;1,2,3", "xgft:2;4,6;1,2")
BY_DESTINATION = (
    "minhop",
    "updn",
    "ftree",
    "dmodk",
    "dmodc",
    "rnca-d",
    "dfsssp",
    "sar",
    "sar-plus",
)


def legal_distance(fabric: Fabric, legal: Orientation, source: int, root: int) -> int:
    """Channels on the shortest path that falls as soon as falling alone will do; -1: none."""
    fall = nx.DiGraph()
    fall.add_nodes_from(range(fabric.switches))
    rise = fall.copy()
    ends = zip(fabric.channel_source.tolist(), fabric.channel_target.tolist(), strict=True)
    for c, (a, b) in enumerate(ends):
        (rise if legal.higher[c] else fall).add_edge(a, b) if fabric.channel_up[c] else None
    falls = nx.single_target_shortest_path_length(fall, root)
    falls = dict(falls)
    if source in falls:
        return falls[source]
    best = -1
    for turn, up in nx.single_source_shortest_path_length(rise, source).items():
        on_way = [w for w in nx.shortest_path(rise, source, turn)[:-1] if w in falls]
        if turn in falls and not on_way and (best < 0 or up + falls[turn] < best):
            best = up + falls[turn]
    return best


@examples(80)
@given(fabric=fabrics())
def test_updn_serves_every_fabric_in_one_lane(fabric: Fabric) -> None:
    if not is_connected(fabric):
        return
    routes = load_engine("updn").route(fabric, NOBODY, Options())
    assert check_routes(fabric, routes).problems == ()
    graph = graph_of(fabric)
    if not updn_order(fabric, graph) and orders_by_height(fabric, graph):
        return  # below
    legal = updn_order(fabric, graph) or orient(fabric, around(fabric, graph))
    assert_shortest_legal_paths(fabric, legal, routes)


@examples(80)
@given(fabric=fabrics())
def test_up_and_down_paths_of_least_weight(fabric: Fabric) -> None:
    if not is_connected(fabric) or not fabric.is_host_port.any():
        return
    graph = graph_of(fabric)
    for legal in legal_orders(fabric, graph, orders_by_height(fabric, graph)):
        egress, weight = legal_tables(fabric, graph, legal)
        routes = Routes("updn", fabric.digest, egress[None])
        counted = assert_shortest_legal_paths(fabric, legal, routes)
        assert (counted == weight).all(), "the weights are the hosts' routes"


def assert_shortest_legal_paths(fabric: Fabric, legal: Orientation, routes: Routes) -> I64:
    """Returns int64[C], the routes of the hosts on each channel."""
    counted = np.zeros(fabric.channels, np.int64)
    for d in np.flatnonzero(fabric.is_host_port):
        root = int(fabric.terminal_switch[d])
        for leaf in fabric.leaves.tolist():
            way = path(fabric, routes, leaf, int(d))
            assert way is not None
            assert len(way) == legal_distance(fabric, legal, leaf, root)
            turns = [bool(legal.higher[c]) for c in way]
            assert turns == sorted(turns, reverse=True), "never up again"
            counted[way] += fabric.terminals_at[leaf]
    return counted


@pytest.mark.parametrize(
    "engine",
    [
        name
        if name in ("updn", "ftree", "dmodk", "dmodc")
        else pytest.param(name, marks=pytest.mark.long)
        for name in BY_DESTINATION
    ],
)
def test_degraded_trees_are_served_or_refused(engine: str) -> None:
    """500 trees with up to a third of their cables gone: every pair, or one sentence."""
    served = 0
    for seed in range(share(500)):
        random = Random(seed)
        whole = load_fabric(TREES[seed % len(TREES)])
        dead = random.sample(range(whole.channels), random.randint(0, whole.channels // 6))
        fabric = whole.with_links_down(dead)
        if not is_connected(fabric):
            continue
        try:
            routes = load_engine(engine).route(fabric, synthetic_mix(fabric, seed), Options())
        except Unserved as refusal:
            assert re.search("take|serve", str(refusal)) and fabric.name in str(refusal)
            continue
        served += 1
        assert check_routes(fabric, routes).unreachable_pairs == 0
    assert served >= share(5 if engine in ("dmodk", "rnca-d") else 100)


def test_ftree_says_what_is_no_tree() -> None:
    whole = load_fabric("xgft:2;2,2;1,1")
    assert load_engine("ftree").route(whole, NOBODY, Options())
    from sar_agent.fabric.builder import FabricBuilder

    builder = FabricBuilder("triangle")
    for n in range(3):
        builder.add_switch(n + 1, f"s{n}", 8)
        builder.add_terminal(100 + n, f"h{n} HCA-1", f"h{n}", n, 1)
    for n in range(3):
        builder.add_link(n, 2, (n + 1) % 3, 3)
    with pytest.raises(Unserved) as refused:
        load_engine("ftree").route(builder.build(), NOBODY, Options())
    assert 'triangle is not a fat tree: the cable "s0"[2] -> "s1"[3] joins two switches' in str(
        refused.value
    )
