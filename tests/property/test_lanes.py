"""Lanes against a dependency graph that networkx searches, on random and generated networks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import assign_lanes, routed, with_levels_of
from tests.examples import examples
from tests.worlds.lane_choices import BY_PATH
from tests.worlds.networks import networks
from tests.worlds.oracles import path

ENGINES = ("minhop", "dfsssp", "sar", "sar-plus")
SMALL = ("torus:5", "torus:7", "torus:3x5", "dragonfly:a=3,p=1,h=1", "dragonfly:a=2,p=2,h=2,g=3")
Network = tuple[Fabric, JobMix]


@st.composite
def loopy(draw: st.DrawFn) -> Network:
    """Random networks, and small tori and Dragonflies with a cable or two missing."""
    if draw(st.booleans()):
        return draw(networks())
    fabric = load_fabric(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(0, 2))):
        cut = fabric.with_links_down([draw(st.integers(0, fabric.channels - 1))])
        up = nx.Graph()
        up.add_nodes_from(range(fabric.switches))
        ends = zip(cut.channel_source, cut.channel_target, strict=True)
        up.add_edges_from(e for e, live in zip(ends, cut.channel_up, strict=True) if live)
        fabric = cut if nx.is_connected(up) else fabric
    return fabric, synthetic_mix(fabric, 1)


def lanes_of(fabric: Fabric, routes: Routes) -> list[nx.DiGraph]:
    """Dependencies between hosts, by lane."""
    graphs = [nx.DiGraph() for _ in range(routes.virtual_lanes)]
    hosts = np.flatnonzero(fabric.is_host_port)
    for d in hosts:
        for s in set(fabric.terminal_switch[hosts].tolist()):
            way = path(fabric, routes, s, int(d))
            assert way is not None
            level = 0 if routes.service_level is None else int(routes.service_level[0, d, s])
            graphs[level].add_edges_from(itertools.pairwise(way))
    return graphs


def require_safe(fabric: Fabric, routes: Routes) -> None:
    assert all(map(nx.is_directed_acyclic_graph, lanes_of(fabric, routes)))
    assert check_routes(fabric, routes).passed


@pytest.mark.parametrize("engine", ENGINES)
@examples(40)
@given(network=loopy(), spread=st.booleans())
def test_no_lane_has_a_cycle(engine: str, network: Network, spread: bool) -> None:
    options = replace(BY_PATH, max_lanes=15, spread_lanes=spread)
    plain = load_engine(engine).route(*network, options)
    laid = assign_lanes(network[0], plain, options, mix=network[1])
    require_safe(network[0], laid)
    one_does = check_routes(network[0], plain).passed
    assert (laid.virtual_lanes == 1) == one_does
    assert one_does or not spread or laid.virtual_lanes == 15
    hosts = np.flatnonzero(network[0].is_host_port)
    assert np.array_equal(laid.egress[0, hosts], plain.egress[0, hosts])


@examples(60)
@given(network=loopy(), lanes=st.integers(1, 3))
def test_best_effort_serves_every_network(network: Network, lanes: int) -> None:
    options = replace(BY_PATH, max_lanes=lanes, best_effort=True)
    laid = routed(load_engine("dfsssp"), *network, options)
    assert laid.virtual_lanes <= lanes
    require_safe(network[0], laid)
    assert laid.engine == "dfsssp" or (laid.virtual_lanes == 1 and laid.remarks)


@examples(60)
@given(network=loopy())
def test_one_lane_is_kept_where_up_and_down_paths_load_little_more(network: Network) -> None:
    """Loads of plain Python decide, not those of the engines."""
    fabric, mix = network
    plain = load_engine("dfsssp").route(fabric, mix, Options())
    other = load_engine("updn").route(fabric, mix, Options())
    one_does = check_routes(fabric, plain).passed
    little = heaviest(fabric, mix, other) <= 1.3 * max(1, heaviest(fabric, mix, plain))
    try:
        laid = assign_lanes(fabric, plain, Options(), mix=mix)
    except Unserved:
        assert not one_does and not little
        return
    require_safe(fabric, laid)
    assert laid.virtual_lanes == 1 and (laid.engine == "dfsssp") == one_does
    assert one_does or (little and (laid.egress == other.egress).all())


def heaviest(fabric: Fabric, mix: JobMix, routes: Routes) -> float:
    """The largest load, of jobs that send to all others alike, or of all hosts as one job."""
    jobs = mix.jobs or (make_job("all", np.flatnonzero(fabric.is_host_port).tolist()),)
    load = np.zeros(fabric.channels)
    fastest = float(fabric.terminal_rate.max())
    for job in jobs:
        for a, b in itertools.permutations(job.terminals.tolist(), 2):
            way = path(fabric, routes, int(fabric.terminal_switch[a]), b)
            assert way is not None
            load[way] += fastest / (len(job.terminals) - 1) / fabric.channel_rate[way]
    return float(load.max(initial=0))


@examples(40)
@given(network=loopy())
def test_levels_that_are_kept_are_as_safe(network: Network) -> None:
    """The same tables with the levels they had are the same routes."""
    fabric, mix = network
    options = BY_PATH
    plain = load_engine("sar-plus").route(fabric, mix, options)
    laid = assign_lanes(fabric, plain, options, mix=mix)
    kept = with_levels_of(laid, fabric, plain, fabric, options)
    if laid.virtual_lanes == 1:
        assert kept is None
    else:
        assert kept is not None and kept.digest == laid.digest
        assert with_levels_of(laid, fabric, plain, fabric, replace(options, max_lanes=1)) is None
