"""Where all shortest paths rise, then fall, no choice among them closes a credit loop."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.updown_property import rise_then_fall
from tests.examples import examples
from tests.worlds.networks import fabrics
from tests.worlds.oracles import live_graph

TREES = ("xgft:2;3,4;1,3", "xgft:3;2,3,3;1,2,2", "xgft:3;3,2,4;1,3,2")


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
