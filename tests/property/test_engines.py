"""Engines, checks and measures against slow oracles on random fabrics."""

from __future__ import annotations

from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.check.reachability import check_reachability
from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.lids import assign_lids
from sar_agent.formats.conversion import file_to_routes, routes_to_file
from sar_agent.formats.routes_file import encode
from sar_agent.install.changes import table_changes
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality import measure
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.shortest_path_dag import new_cache
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.sar import destination_order
from sar_agent.routing.weighted_trees import grow
from tests.examples import examples
from tests.worlds.fabrics import fabric_of, records
from tests.worlds.networks import ENGINES, networks
from tests.worlds.oracles import (
    algorithm_1,
    effective_efi,
    has_credit_loop,
    live_graph,
    path,
)

Network = tuple[Fabric, JobMix]


def routed(network: Network, engine: str) -> Routes:
    return load_engine(engine).route(*network, Options())


@examples(40)
@pytest.mark.parametrize("engine", ENGINES)
@given(network=networks())
def test_every_route_is_a_shortest_path(engine: str, network: Network) -> None:
    fabric, _ = network
    routes = routed(network, engine)
    assert check_reachability(fabric, routes).unreachable_pairs == 0
    hops = dict(nx.all_pairs_shortest_path_length(live_graph(fabric)))
    for d in range(fabric.destinations):
        if d < fabric.terminals and not fabric.terminal_up[d]:
            continue
        for s in range(fabric.switches):
            way = path(fabric, routes, s, d)
            assert way is not None
            assert len(way) == hops[s][int(fabric.destination_switch[d])]


@examples(100)
@given(network=networks())
def test_sar_is_algorithm_1(network: Network) -> None:
    """Where that closes no loop; elsewhere the paths of one lane may be taken instead."""
    fabric, mix = network
    every = new_cache(fabric)
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    order, weight = destination_order(fabric, mix), np.zeros(fabric.channels, np.int64)
    grow(fabric, graph_of(fabric), every, mix, *order, weight, egress)
    routes = Routes("sar", fabric.digest, egress[None])
    if not has_credit_loop(fabric, routes):
        routes = routed(network, "sar")
    channels = routes.next_channel(fabric)
    for t, tree in algorithm_1(fabric, mix).items():
        assert {s: int(channels[t, s]) for s in tree} == tree


@examples(40)
@pytest.mark.parametrize("engine", ENGINES)
@given(network=networks(), random=st.randoms(use_true_random=False))
def test_broken_tables_are_found_as_brute_force_finds_them(
    engine: str, network: Network, random: Random
) -> None:
    fabric, _ = network
    routes = routed(network, engine)
    verdict = check_routes(fabric, routes)
    assert verdict.deadlock_free == verdict.passed == (not has_credit_loop(fabric, routes))
    assert verdict.deadlock_free or not verdict.deadlock_free_everyone
    for _ in range(random.randrange(4)):
        d = random.randrange(fabric.destinations)
        s = random.randrange(fabric.switches)
        routes.egress[0, d, s] = random.choice([*range(12), 255])
    bad = [
        (s, d)
        for d in range(fabric.destinations)
        if d >= fabric.terminals or fabric.terminal_up[d]
        for s in range(fabric.switches)
        if path(fabric, routes, s, d) is None
    ]
    reach = check_reachability(fabric, routes)
    assert reach.unreachable_pairs == len(bad)
    assert bool(reach.first) == bool(bad)
    if not bad:
        assert check_routes(fabric, routes).deadlock_free == (not has_credit_loop(fabric, routes))


@examples(40)
@pytest.mark.parametrize("engine", ENGINES)
@given(network=networks())
def test_measures_agree_with_counting_pairs(engine: str, network: Network) -> None:
    fabric, mix = network
    routes = routed(network, engine)
    found = measure(fabric, mix, routes)
    efi = effective_efi(fabric, mix, routes)
    assert found.channel_efi.tolist() == efi
    live = [e for e, up in zip(efi, fabric.channel_up, strict=True) if up]
    assert found.effective_efi_max == max(live)
    assert found.dark_fiber_ratio == pytest.approx(live.count(0) / len(live))
    assert found.lower_bound_efi_max <= found.effective_efi_max
    assert found.lower_bound_load_max <= found.load_max + 1e-9
    for job, detail in zip(mix.jobs, found.jobs_detail, strict=True):
        alone = effective_efi(fabric, JobMix((job,)), routes)
        used = [c for c, routes_on in enumerate(alone) if routes_on]
        assert detail.links == len(used)
        assert detail.efi_max == max((efi[c] for c in used), default=0)
        assert detail.efi_own_max == max(alone)


@examples(40)
@given(network=networks(), random=st.randoms(use_true_random=False))
def test_sar_gives_the_same_bytes_whatever_the_order_of_jobs(
    network: Network, random: Random
) -> None:
    fabric, mix = network
    shuffled = list(mix.jobs)
    random.shuffle(shuffled)
    again = JobMix.of(shuffled)
    assert again == mix
    assert routed((fabric, again), "sar").digest == routed(network, "sar").digest


@examples(60)
@given(data=st.data())
def test_the_order_of_nodes_in_a_file_changes_no_byte(data: st.DataObject) -> None:
    nodes = data.draw(records())
    files = []
    for order in (nodes, data.draw(st.permutations(nodes))):
        fabric = fabric_of(order)
        hosts = sorted(fabric.hosts)
        jobs = [make_job("1", (t for h in hosts[::2] for t in fabric.hosts[h]))]
        mix = multi_switch_mix(fabric, jobs)
        files.append(encode(routes_to_file(fabric, routed((fabric, mix), "sar"), 1)))
    assert files[0] == files[1]


@examples(40)
@pytest.mark.parametrize("engine", ENGINES)
@given(network=networks())
def test_a_routes_file_holds_all_of_the_routes(engine: str, network: Network) -> None:
    fabric, _ = network
    routes = routed(network, engine)
    file = routes_to_file(fabric, routes, 7)
    assert np.array_equal(file_to_routes(fabric, file).egress, routes.egress)
    assert table_changes(fabric, routes, routes) == (0, 0)
    assert table_changes(fabric, None, routes).entries == routes.egress.size
    other = routed(network, "minhop")
    entries, blocks = table_changes(fabric, other, routes)
    assert routes.entries_changed(other) == entries
    switches, terminals = assign_lids(fabric)
    lids = np.concatenate([terminals, switches])
    d, s = np.nonzero(routes.egress[0] != other.egress[0])
    assert blocks == len(set(zip((lids[d] // 64).tolist(), s.tolist(), strict=True)))
