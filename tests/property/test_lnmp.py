"""LNMP: its paths against all paths of a small network, and against credit loops."""

from __future__ import annotations

from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes.routed_engine import routed
from tests.examples import examples
from tests.worlds.oracles import path

NOBODY = JobMix(())
SPECS = ("slimfly:3,hosts=1", "slimfly:5,hosts=1", "hyperx:3x4,hosts=2", "dragonfly:a=3,p=1,h=1")


def layers(fabric: Fabric, lmc: int) -> list[Routes]:
    """A table for each LID offset."""
    egress = load_engine("lnmp").route(fabric, NOBODY, Options(lmc=lmc)).egress
    return [Routes("one", fabric.digest, egress[o : o + 1]) for o in range(1 << lmc)]


def lengths(fabric: Fabric, routes: Routes) -> list[int]:
    """Hops of each pair of a switch and a host on another."""
    found = []
    for s in range(fabric.switches):
        for t in range(fabric.terminals):
            way = path(fabric, routes, s, t)
            assert way is not None
            ends = [int(fabric.channel_source[c]) for c in way]
            assert len(set(ends)) == len(ends), "no switch twice"
            found.append(len(way))
    return found


def switch_graph(fabric: Fabric) -> nx.Graph:
    live = np.flatnonzero(fabric.channel_up)
    ends = zip(fabric.channel_source[live], fabric.channel_target[live], strict=True)
    return nx.Graph([(int(a), int(b)) for a, b in ends])


@examples(12)
@given(
    spec=st.sampled_from(SPECS), dead=st.integers(0, 2), random=st.randoms(use_true_random=False)
)
def test_layer_0_is_shortest_and_others_at_most_two_hops_longer_than_the_diameter(
    spec: str, dead: int, random: Random
) -> None:
    whole = load_fabric(spec)
    fabric = whole.with_links_down(random.sample(range(whole.channels), dead))
    graph = switch_graph(fabric)
    if len(graph) < fabric.switches or not nx.is_connected(graph) or nx.diameter(graph) > 3:
        return
    shortest = dict(nx.all_pairs_shortest_path_length(graph))
    best = [
        shortest[s][int(fabric.terminal_switch[t])]
        for s in range(fabric.switches)
        for t in range(fabric.terminals)
    ]
    first, *others = layers(fabric, 1)
    assert lengths(fabric, first) == best
    for routes in others:
        found = lengths(fabric, routes)
        assert all(a <= b for a, b in zip(best, found, strict=True))
        assert max(found) <= nx.diameter(graph) + 2
    assert check_routes(fabric, routed(load_engine("lnmp"), fabric, NOBODY, Options(lmc=1))).passed


@pytest.mark.parametrize(
    ("spec", "lmc", "what"),
    [
        ("slimfly:3", 0, "needs an LMC of 1"),
        ("xgft:3;2,2,2;1,2,2", 1, "4 hops apart, and lnmp serves 3; take sar-plus"),
    ],
)
def test_unserved_fabrics_are_refused(spec: str, lmc: int, what: str) -> None:
    with pytest.raises(Unserved, match=what):
        load_engine("lnmp").route(load_fabric(spec), NOBODY, Options(lmc=lmc))


def test_a_network_that_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sar_lab.research.engines.lnmp.MOST_PATHS", 1e4)
    with pytest.raises(Unserved, match="too large for lnmp"):
        layers(load_fabric("slimfly:5"), 1)
