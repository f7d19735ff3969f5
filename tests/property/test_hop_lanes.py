"""Lanes chosen hop by hop: exactly where they exist, and proved as a slow oracle proves them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.agent.update_strategy import UpdateContext, UpdateMethod, choose_update
from sar_agent.check import check_and_prove, check_routes
from sar_agent.check.transition import Way, examine
from sar_agent.config.update import UpdateConfig
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes.hop import hop_lanes
from tests.examples import examples
from tests.worlds.grids import by_dimension, routes_by, torus
from tests.worlds.networks import fabrics
from tests.worlds.odd_trees import site
from tests.worlds.oracles import has_credit_loop, path


def ways(fabric: Fabric, routes: Routes) -> list[tuple[int, list[int]]]:
    """(port of the source, channels) between all live host ports."""
    hosts = np.flatnonzero(fabric.is_host_port)
    return [
        (
            int(fabric.terminal_switch_port[a]),
            path(fabric, routes, int(fabric.terminal_switch[a]), int(b)) or [],
        )
        for a, b in itertools.permutations(hosts, 2)
    ]


def loops(fabric: Fabric, routes: Routes) -> bool:
    """Between hosts, packet by packet, by networkx."""
    assert routes.hop_lane is not None
    graph = nx.DiGraph()
    for entry, way in ways(fabric, routes):
        held = []
        for c in way:
            lane = int(routes.hop_lane[fabric.channel_source[c], entry, fabric.channel_port[c]])
            held.append((c, lane))
            entry = int(fabric.channel_port[fabric.channel_reverse[c]])
        graph.add_edges_from(itertools.pairwise(held))
    return not nx.is_directed_acyclic_graph(graph)


def pairs_close_a_cycle(fabric: Fabric, routes: Routes) -> bool:
    """Then no lanes whatever will do."""
    graph: nx.DiGraph = nx.DiGraph()
    for _, way in ways(fabric, routes):
        graph.add_edges_from(itertools.pairwise(itertools.pairwise(way)))
    return not nx.is_directed_acyclic_graph(graph)


@examples(150)
@given(fabrics(), st.sampled_from(["minhop", "dfsssp"]))
def test_lanes_are_found_wherever_they_exist(fabric: Fabric, engine: str) -> None:
    routes = load_engine(engine).route(fabric, JobMix.of([]), Options())
    found = hop_lanes(fabric, routes, 15)
    assert (found is None) == pairs_close_a_cycle(fabric, routes)
    if found is None:
        return
    assert np.array_equal(found.egress, routes.egress) and found.service_level is None
    assert check_routes(fabric, found).passed
    if found.hop_lane is None:
        assert found.virtual_lanes == 1 and not has_credit_loop(fabric, routes)
    else:
        assert found.hop_lane.max() == found.virtual_lanes - 1 and not loops(fabric, found)


@examples(100)
@given(fabrics())
def test_other_paths_are_shortest_too_and_proved(fabric: Fabric) -> None:
    routes = load_engine("minhop").route(fabric, JobMix.of([]), Options())
    found = hop_lanes(fabric, routes, 15, other_paths=True)
    if found is None:
        assert pairs_close_a_cycle(fabric, routes)
        return
    assert check_routes(fabric, found).passed
    for d, s in np.ndindex(fabric.destinations, fabric.switches):
        before, after = path(fabric, routes, s, d), path(fabric, found, s, d)
        assert (before is None) == (after is None) and len(before or ()) == len(after or ())


@examples(150)
@given(fabrics(), st.integers(1, 3), st.integers(0, 2**32))
def test_the_check_agrees_with_the_oracle_on_any_lanes(
    fabric: Fabric, lanes: int, seed: int
) -> None:
    routes = load_engine("minhop").route(fabric, JobMix.of([]), Options())
    ports = int(fabric.switch_ports.max()) + 1
    table = np.random.default_rng(seed).integers(0, lanes, (fabric.switches, ports, ports))
    mixed = replace(routes, virtual_lanes=lanes, hop_lane=table.astype(np.uint8))
    verdict = check_routes(fabric, mixed)
    assert verdict.deadlock_free != loops(fabric, mixed)
    assert verdict.hop_by_hop and verdict.deadlock_free >= verdict.deadlock_free_everyone


def test_no_lanes_whatever_help_a_ring_of_seven() -> None:
    """All lanes of all pairs of the seven channels one way round, by brute force: up to three."""
    fabric = torus((7,))
    routes = routes_by(fabric, by_dimension((7,)))
    assert hop_lanes(fabric, routes, 15) is None
    triples = {
        three
        for _, way in ways(fabric, routes)
        for three in zip(way, way[1:], way[2:], strict=False)
    }
    up = [c for c in range(fabric.channels) if clockwise(fabric, c, 7)]
    pairs = [(c, c2) for c in up for c2 in up if any((c, c2) == three[:2] for three in triples)]
    assert len(pairs) == 7
    for lanes in itertools.product(range(3), repeat=len(pairs)):
        lane = dict(zip(pairs, lanes, strict=True))
        graph = nx.DiGraph(
            ((b, lane[a, b]), (c, lane[b, c])) for a, b, c in triples if (a, b) in lane
        )
        assert not nx.is_directed_acyclic_graph(graph)


def clockwise(fabric: Fabric, channel: int, size: int) -> bool:
    ahead = int(fabric.channel_target[channel]) - int(fabric.channel_source[channel])
    return ahead % size == 1


def test_errors_name_their_cause() -> None:
    fabric = torus((5,))
    found = hop_lanes(fabric, routes_by(fabric, by_dimension((5,))))
    assert found is not None and found.hop_lane is not None
    words = check_routes(fabric, found).lanes_hold
    assert words == "2 virtual lane(s), lanes hop by hop: holds whatever service level hosts use"
    flat = replace(found, hop_lane=np.zeros_like(found.hop_lane))
    problem = check_routes(fabric, flat).problems[0]
    assert "credit loop with lanes chosen hop by hop" in problem and "in lane 0" in problem
    with pytest.raises(InputError, match="do not fit"):
        check_routes(fabric, replace(found, virtual_lanes=1))
    with pytest.raises(InputError, match="do not fit"):
        check_routes(fabric, replace(found, hop_lane=found.hop_lane[1:]))


def test_lanes_hop_by_hop_are_part_of_the_proof() -> None:
    fabric = torus((5,))
    plain = routes_by(fabric, by_dimension((5,)))
    found = hop_lanes(fabric, plain)
    assert found is not None and found.hop_lane is not None
    assert found.digest != plain.digest
    assert check_and_prove(fabric, found).proved
    flat = replace(found, hop_lane=np.zeros_like(found.hop_lane))
    assert not check_routes(fabric, flat).passed and not check_routes(fabric, plain).passed


@pytest.mark.parametrize(
    "fabric", [torus((5,)), site(storage=0, bridges=2, seed=2)], ids=["ring", "odd tree"]
)
def test_from_lanes_that_are_needed_only_a_window_leads_to_one(fabric: Fabric) -> None:
    """docs/upgrade.md: packets in the old and in the new lanes may block each other."""
    laid = hop_lanes(fabric, load_engine("dfsssp").route(fabric, JobMix(()), Options()))
    assert laid is not None and laid.virtual_lanes > 1
    one = load_engine("updn").route(fabric, JobMix(()), Options())
    found, now = examine(fabric, laid, one), datetime(2026, 11, 20, 12)
    assert found.way is Way.UNSAFE

    def choice(mode: str) -> UpdateMethod:
        config = UpdateConfig.model_validate({"mode": mode, "windows": ["11:00-13:00"]})
        return choose_update(config, found, UpdateContext(jobs=1), now).how

    assert choice("fast") is UpdateMethod.REFUSE
    assert choice("window") is UpdateMethod.DIRECT
