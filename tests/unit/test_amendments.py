"""The plugin has repaired the routes in force by itself: the agent goes on from there."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.history import DECISION, History, Row
from sar_agent.agent.outcome import Result
from sar_agent.agent.status import read_agent_status
from sar_agent.check import check_routes
from sar_agent.check.reachability import check_reachability
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.install.amended import completed
from sar_agent.routing import Options, load_engine
from tests.worlds.agent_world import JOBS, Repaired, World
from tests.worlds.fake_opensm import job
from tests.worlds.key_site import Site


@pytest.fixture
def world(tmp_path: Path) -> Repaired:
    world = Repaired(tmp_path)
    assert world.once().result is Result.INSTALLED
    return world


def decisions(world: Repaired) -> list[Row]:
    """The newest first, without what was seen of cables."""
    return History(world.folder / "state").last(9, DECISION)


def test_the_agent_goes_on_from_what_the_plugin_repaired(world: Repaired) -> None:
    installed = world.egress
    world.cut_and_repair()
    amended = world.egress
    assert (amended != installed).any()
    report = world.once()
    assert report.result is Result.NOTHING, report.sentence
    assert np.array_equal(world.egress, amended) and world.bridge.loads == [1]
    state = world.agent.installed.store.load()
    assert state is not None and (state.generation, state.identity) == (1, "1+1")
    assert state.fabric_digest == world.fabric.digest.hex()
    (row,) = decisions(world)[:1]
    assert (row.reason, row.result, row.generation) == ("amended", "followed", 1)
    assert row.entries_changed and "OpenSM has repaired generation 1 itself" in row.why
    assert world.once().result is Result.NOTHING
    assert len(decisions(world)) == 2, "followed once"
    status = read_agent_status(world.agent.config, world.agent.manager)
    assert status.ours and "generation 1 with 1 repair of its own" in status.words()


def test_it_waits_while_opensm_may_be_repairing(world: Repaired) -> None:
    """OpenSM has discovered the change, and its plugin is not done with new tables."""
    world.cut()
    world.bridge.fabric = world.fabric
    world.bridge.topology_changes += 1
    world.bridge.state = "building"
    report = world.once()
    assert report.result is Result.LATER and "not done with the changed fabric" in report.sentence
    world.bridge.state = "built"
    world.bridge.repair(world.fabric)
    assert world.once().result is Result.NOTHING
    assert History(world.folder / "state").last(1)[0].reason == "amended"
    assert world.bridge.loads == [1]


def test_the_next_plan_starts_from_it(world: Repaired) -> None:
    world.cut_and_repair()
    world.once()
    amended = world.egress
    world.source.records = JOBS[:1]
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.JOBS), report.sentence
    assert world.bridge.generation == 2 and world.bridge.amendments == 0
    # A plan has an entry at the spine that the plugin could leave without.
    gone = amended == 255
    assert np.count_nonzero((world.egress != amended) & ~gone) < amended.size / 4
    assert check_reachability(world.fabric, world.agent.current.last.routes).unreachable_pairs == 0  # type: ignore[union-attr]
    assert world.once().result is Result.NOTHING


def test_a_second_repair_and_a_cable_that_comes_back(world: Repaired) -> None:
    whole = world.net.read_text()
    first = world.bridge.tables
    world.cut_and_repair()
    world.once()
    world.cut(spine=1)
    world.source.records = ()  # at the same time
    fabric = world.fabric
    if not fabric.channel_up[fabric.channel_source == 0].any():  # leaf 0 has no cable left
        world.net.write_text(whole)
    # The cable comes back, and the plugin puts its own plan in force again.
    world.net.write_text(whole)
    world.source.records = JOBS
    world.bridge.fabric, world.bridge.tables, world.bridge.amendments = world.fabric, first, 0
    world.bridge.topology_changes += 1
    world.bridge.routings += 1
    assert world.once().result is Result.NOTHING
    state = world.agent.installed.store.load()
    assert state is not None and state.identity == "1"
    assert state.fabric_digest == world.fabric.digest.hex() and world.bridge.loads == [1]


def test_in_quiet_time_it_becomes_a_generation_of_its_own(world: Repaired) -> None:
    world.cut_and_repair()
    assert world.once().result is Result.NOTHING
    now = [0.0]
    world.agent.pacing.pace.clock = lambda: now[0]
    world.agent.amendments._amended = ""
    assert world.once().result is Result.NOTHING
    now[0] = 3599.0
    assert world.once().result is Result.NOTHING
    now[0] = 3601.0
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.AMENDED), report.sentence
    assert world.bridge.generation == 2 and world.bridge.amendments == 0
    assert world.once().result is Result.NOTHING


def test_a_repair_that_loses_packets_is_replaced_at_once(
    world: Repaired, caplog: pytest.LogCaptureFixture
) -> None:
    world.cut()
    tables = world.bridge.tables
    assert tables
    world.bridge.repair(world.fabric)
    spoiled = world.bridge.tables.forwarding.copy()  # type: ignore[union-attr]
    spoiled[0, 1, 0] = 255  # a leaf with hosts has no route to the first host
    world.bridge.tables = replace(world.bridge.tables, forwarding=spoiled)  # type: ignore[type-var]
    with caplog.at_level(logging.WARNING):
        report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.GENERATION), report.sentence
    assert "with other entries" in report.sentence
    assert "do not pass the checks" in caplog.text and world.bridge.generation == 2


def used(world: World, switch: int, port: int) -> bool:
    """Whether a route to another switch leaves by that port."""
    table = file_to_routes(world.fabric, world.bridge.tables).egress[0]  # type: ignore[arg-type]
    return bool((table[:, switch] == port).any())


@pytest.mark.parametrize("another", [False, True])
def test_a_cable_that_comes_back_is_used(tmp_path: Path, another: bool) -> None:
    """The plan was made without it. `another` one dies at the same time, which the plugin
    repairs."""
    world = World(tmp_path)
    world.source.records = (job("3", *(f"n{n:03}" for n in (*range(1, 5), *range(9, 17)))),)
    whole = world.fabric
    world.cut()
    assert world.once().result is Result.INSTALLED and not used(world, 0, 5)
    world.bridge.topology_changes += 1
    at = (whole.channel_source == 1) & (whole.channel_port == 5)
    now = whole.with_links_down(np.flatnonzero(at).tolist()) if another else whole
    write_ibsim_net(now, world.net)
    if another:
        world.bridge.repair(now)
        assert world.once().result is Result.NOTHING, "what the plugin did, first"
        world.agent.pacing.pace.forget("amended")
    report = world.once()
    expected = Reason.AMENDED if another else Reason.FABRIC
    assert (report.result, report.reason) == (Result.INSTALLED, expected), report.sentence
    assert used(world, 0, 5)


def test_keys_are_repaired_with_the_tables(tmp_path: Path) -> None:
    site = Site(tmp_path, reoptimise_seconds=3600)
    assert site.pass_().result is Result.INSTALLED
    assert site.ask()["state"] == "in_force"
    own = {lease.key: lease.own for lease in site.agent.keys.pool.leases}
    site.cut()
    site.bridge.repair(site.fabric)
    amended = site.tables()
    assert site.pass_().result is Result.NOTHING
    pool = site.agent.keys.pool
    made = {lease.key: pool.made(lease.key) for lease in pool.leases}
    worse = [key for key, key_made in made.items() if key_made is None]
    assert pool.owed == bool(worse) == site.desk.busy
    for key, key_made in made.items():
        if key_made is not None:
            assert key_made.own <= own[key]
    # No request and no plan: what became worse is made again in the next turn.
    site.agent.serve_keys()
    assert not pool.owed and site.bridge.loads == [1, 2, 3][: 3 if worse else 2]
    assert all(lease.fabric == site.fabric.digest.hex() for lease in pool.leases)
    touched = {int(o) for o in np.argwhere((site.tables() != amended) & (amended != 255))[:, 0]}
    assert touched <= {2}
    assert site.once().result is Result.NOTHING


def test_spines_without_a_route_are_completed_and_hosts_without_one_are_not(
    tmp_path: Path,
) -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")
    net = tmp_path / "fabric.net"
    write_ibsim_net(fabric, net)
    routes = load_engine("sar").route(fabric, synthetic_mix(fabric, 1), Options())
    senders = np.ones(fabric.switches, np.bool_)
    spine = int(np.flatnonzero(fabric.terminals_at == 0)[0])
    # A host whose tree does not pass this spine.
    passing = fabric.channel_target[
        fabric.channel_by_port[np.arange(fabric.switches), routes.egress[0]]
    ]
    leaves = np.flatnonzero(fabric.terminals_at)
    d = next(
        d
        for d in range(fabric.terminals)
        if not ((passing[d, leaves] == spine) & (leaves != fabric.terminal_switch[d])).any()
    )
    egress = routes.egress.copy()
    egress[0, d, spine] = 255
    amended = replace(routes, egress=egress, senders=senders)
    assert not check_routes(fabric, amended).passed
    found = completed(fabric, amended)
    assert check_routes(fabric, found).passed and not found.senders[spine]  # type: ignore[index]
    assert np.count_nonzero(found.egress != egress) == 1 and egress[0, d, spine] == 255
    for place in (int(leaves[0]), spine):
        other = next(
            d
            for d in range(fabric.terminals)
            if fabric.terminal_switch[d] != place
            and (place != spine or (passing[d, leaves] == spine).any())
        )
        lost = routes.egress.copy()
        lost[0, other, place] = 255
        assert not check_routes(fabric, completed(fabric, replace(routes, egress=lost))).passed


def lose_a_leaf(world: Repaired) -> str:
    """The last leaf switch dies with its hosts; no entry in force leads through it. Returns the
    description of the whole fabric."""
    whole, gone = world.net.read_text(), {"S1-3", "n013", "n014", "n015", "n016"}
    blocks = [
        "\n".join(line for line in block.splitlines() if '] "S1-3"' not in line)
        for block in whole.split("\n\n")
        if not any(f' "{name}"' in block.split("#")[0] for name in gone)
    ]
    use(world, "\n\n".join(blocks) + "\n")
    return whole


def use(world: Repaired, net: str) -> None:
    """Another fabric; the plugin finds nothing to repair."""
    world.net.write_text(net)
    world.bridge.fabric = world.fabric
    world.bridge.topology_changes += 1
    world.bridge.routings += 1
    world.bridge.state = "built"


def test_a_dead_leaf_switch_stays_in_the_plan(world: Repaired) -> None:
    """Nothing is installed, so the plugin still has its routes when the switch comes back, even if
    the agent is not running then."""
    whole = lose_a_leaf(world)
    assert world.fabric.switches == 5
    report = world.once()
    assert report.result is Result.NOTHING, report.sentence
    state = world.agent.installed.store.load()
    assert state is not None and state.fabric_digest == world.fabric.digest.hex()
    row = History(world.folder / "state").last(1)[0]
    assert (row.reason, row.result, row.entries_changed) == ("amended", "followed", 0)
    assert "generation 1 serves the changed fabric as it is" in row.why
    assert world.once().result is Result.NOTHING
    world.restart()
    assert world.once().result is Result.NOTHING
    use(world, whole)
    assert world.once().result is Result.NOTHING
    assert world.once().result is Result.NOTHING and world.bridge.loads == [1]
    assert world.agent.current.last.fabric.switches == 6  # type: ignore[union-attr]


def test_hosts_that_fell_out_with_a_switch_are_no_ends_and_starts(world: Repaired) -> None:
    """Slurm's queue stays the same, while a leaf switch dies and comes back."""
    now = time.time()
    world.source.records = (
        job("1", "n001", "n005", "n013", start=now - 7200),
        job("2", "n002", "n014", start=now - 7200),
        job("3", "n003", "n015", "n016", "n006"),  # started who knows when
    )
    assert world.once().result is Result.INSTALLED
    whole = lose_a_leaf(world)
    said = "4 hosts (n013, n014, n015, …) of 3 multi-switch jobs left the fabric"
    assert world.once().sentence.startswith(said)
    assert world.once().result is Result.NOTHING
    use(world, whole)
    assert world.once().result is Result.INSTALLED
    assert world.once().result is Result.NOTHING
    rows = [row.why for row in History(world.folder / "state").last(20)]
    assert said in rows
    assert sum(" started" in why or " ended" in why for why in rows) == 1, "when they came"
