"""updn and ftree: every pair, in one lane, by shortest legal paths. Where all shortest
paths rise, then fall, no choice among them closes a credit loop."""

from __future__ import annotations

import re
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.model import I64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.even_updown import around, legal_orders, legal_tables
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.turn_order import places_by_height
from sar_agent.routing.updn import updn_order
from sar_agent.routing.updown_paths import Orientation, orient
from sar_agent.routing.updown_property import rise_then_fall
from tests.examples import examples, share
from tests.worlds.networks import fabrics
from tests.worlds.oracles import live_graph, path

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
    if not updn_order(fabric, graph) and places_by_height(fabric, graph):
        return  # below
    legal = updn_order(fabric, graph) or orient(fabric, around(fabric, graph))
    assert_shortest_legal_paths(fabric, legal, routes)


@examples(80)
@given(fabric=fabrics())
def test_up_and_down_paths_of_least_weight(fabric: Fabric) -> None:
    if not is_connected(fabric) or not fabric.is_host_port.any():
        return
    graph = graph_of(fabric)
    for legal in legal_orders(fabric, graph, places_by_height(fabric, graph)):
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
    assert load_engine("ftree").route(load_fabric("xgft:2;2,2;1,1"), NOBODY, Options())
    said = r'torus:3 is not a fat tree: the cable ".+"\[\d\] -> ".+"\[\d\] joins two switches'
    with pytest.raises(Unserved, match=said):
        load_engine("ftree").route(load_fabric("torus:3"), NOBODY, Options())


def some_choice_closes_a_loop(fabric: Fabric) -> bool:
    """Whether all shortest paths between hosts together do, by networkx."""
    graph = live_graph(fabric)
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    waits = nx.DiGraph()
    hosts = np.flatnonzero(fabric.terminals_at).tolist()
    for source in hosts:
        for root in hosts:
            if root not in hops[source]:
                continue
            on = {
                (a, b, c)
                for a, b, c in graph.edges(keys=True)
                if a in hops[source]
                and root in hops[b]
                and hops[source][a] + 1 + hops[b][root] == hops[source][root]
            }
            waits.add_edges_from((c, d) for _, v, c in on for w, _, d in on if v == w)
    return not nx.is_directed_acyclic_graph(waits)


def with_random_failures(data: st.DataObject, fabric: Fabric) -> Fabric:
    links = data.draw(st.sets(st.integers(0, max(0, fabric.channels - 1)), max_size=3))
    switches = data.draw(st.sets(st.integers(0, fabric.switches - 1), max_size=1))
    broken = fabric.with_links_down(sorted(links)) if fabric.channels else fabric
    return broken.with_switches_down(sorted(switches))


@examples(300)
@given(
    fabric=st.one_of(fabrics(), st.sampled_from(TREES).map(load_fabric)),
    data=st.data(),
)
def test_no_choice_closes_a_loop_where_all_paths_rise_then_fall(
    fabric: Fabric, data: st.DataObject
) -> None:
    fabric = with_random_failures(data, fabric)
    graph = graph_of(fabric)
    if rise_then_fall(fabric, graph, all_hops(graph), between_hosts=True):
        assert not some_choice_closes_a_loop(fabric)
