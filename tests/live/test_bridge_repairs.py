"""The plugin repairs routes that have a certificate inside OpenSM's routing, without an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile, decode, encode
from sar_agent.opensm.plugin_client import PluginRefused, PluginStatus
from tests.worlds.certificates import numbered
from tests.worlds.live import readback
from tests.worlds.live.fat_tree import FatTree
from tests.worlds.live.repair_verdict import verdict
from tests.worlds.live.site import Site, site

pytestmark = pytest.mark.live
FALLBACK = "the next routing engine takes over"
TREE = FatTree(leaves=4, hosts=4, spines=3)


def plan(generation: int = 5, lanes: int = 1, tree: FatTree = TREE) -> RoutesFile:
    found = numbered(decode(encode(tree.routes(generation, lanes=lanes))))
    assert found is not None
    return found


@pytest.fixture
def here() -> Iterator[Site]:
    with site(TREE) as made:
        made.load(plan())
        yield made


def settled(here: Site, holds: Callable[[PluginStatus], bool]) -> PluginStatus:
    """Our routes were in force whenever anyone looked, and are now as expected."""

    def looked(status: PluginStatus) -> bool:
        assert status.engine_in_force == "sar", status.last_error
        return status.settled and holds(status)

    return here.wait(looked)


def hosts_reach_each_other(here: Site, dead: frozenset[str] = frozenset()) -> int:
    """Follows all paths between hosts in the tables in force, as dump_fts shows them; the number of
    entries that are not the plan's. Hosts of a leaf switch in `dead` are left out."""
    lids, tables, file = here.lids(), readback.installed(here.fabric), plan(tree=here.tree)
    row = {int(guid): s for s, guid in enumerate(file.switch_guids)}
    gone = {here.tree.switches()[name] for name in dead}
    for t, guid in enumerate(file.terminal_guids):
        end = int(file.switch_guids[file.terminal_leaf[t]])
        if end in gone:
            continue
        lid = lids[int(guid)].start
        for leaf in {int(file.switch_guids[at]) for at in file.terminal_leaf} - gone:
            s, hops = leaf, 0
            while s != end:
                far = file.far_ends[row[s], tables[s, lid]]
                assert far != NO_SWITCH and hops < 4, (hex(leaf), hex(int(guid)))
                s, hops = int(file.switch_guids[far >> 8]), hops + 1
                assert s not in gone
    wanted = readback.wanted(file, lids)
    return sum(tables.get(at) != port for at, port in wanted.items() if at[0] not in gone)


def test_a_dead_cable_stays_inside_our_engine_and_the_cable_back_brings_the_plan(
    here: Site,
) -> None:
    fallbacks = here.sm.log().count(FALLBACK)
    here.fabric.unlink("leaf0", 5)
    status = settled(here, lambda s: s.topology_changes >= 2 and s.amendments > 0)
    assert (status.generation_in_force, status.last_error) == (5, "")
    assert 0 < status.amended_entries <= 30 and status.repair_ms > 0
    changed = hosts_reach_each_other(here)
    assert 0 < changed <= 30
    assert verdict(here).clean
    dumped = here.dumped()
    assert dumped.generation == 5 and dumped.had is None
    numbers = plan().numbers
    assert dumped.numbers is not None and numbers is not None
    assert np.array_equal(dumped.numbers, numbers)
    assert "generation 5 was repaired" in here.sm.log()

    here.fabric.relink("leaf0", 5)
    here.sm.sweep()
    here.wait(lambda s: s.settled and s.topology_changes >= 3)
    here.wait(lambda s: hosts_reach_each_other(here) == 0)
    here.assert_in_force(plan())
    assert here.bridge.status().engine_in_force == "sar"
    assert here.sm.log().count(FALLBACK) == fallbacks


def repaired(status: PluginStatus, times: int) -> bool:
    return status.amendments == times


def test_cables_of_a_leaf_die_one_after_another_and_no_repair_waits_for_older_packets() -> None:
    """Packets that came by replaced entries wait for ever in this fabric, so a repair that waited
    for them would never come."""
    tree = FatTree(leaves=6, hosts=4, spines=6)
    no_limit = {"head_of_queue_lifetime": "0x14", "leaf_head_of_queue_lifetime": "0x14"}
    with site(tree, options=no_limit) as here:
        here.load(plan(tree=tree))
        for died in range(1, 6):
            here.fabric.unlink("leaf0", tree.hosts + died)
            here.sm.sweep()
            status = settled(here, partial(repaired, times=died))
            assert not status.repair_drops, f"cable {died}"
            hosts_reach_each_other(here)
        assert verdict(here).clean


def test_a_leaf_switch_that_was_cut_off_comes_back(here: Site) -> None:
    """It is alive all the time, without a cable, so it has its old entries; meanwhile, others have
    changed."""
    fallbacks = here.sm.log().count(FALLBACK)
    here.fabric.clear("leaf3")
    settled(here, lambda s: s.switches == 6)
    here.fabric.unlink("leaf0", 5)
    settled(here, lambda s: s.amendments > 0)
    assert hosts_reach_each_other(here, frozenset({"leaf3"})) > 0 and verdict(here).clean
    here.fabric.relink("leaf3")
    here.sm.sweep()
    # Its LIDs wait until packets that came by their former routes are gone.
    status = settled(
        here, lambda s: s.switches == 7 and s.vanished_terminals == 0 and not s.repair_drops
    )
    assert (status.generation_in_force, status.last_error) == (5, "")
    assert 0 < hosts_reach_each_other(here) <= 40 and verdict(here).clean

    here.fabric.relink("leaf0", 5)
    here.sm.sweep()
    here.wait(lambda s: hosts_reach_each_other(here) == 0)
    here.assert_in_force(plan())
    assert here.bridge.status().engine_in_force == "sar"
    assert here.sm.log().count(FALLBACK) == fallbacks


def test_a_spine_that_was_cut_off_comes_back(here: Site) -> None:
    fallbacks = here.sm.log().count(FALLBACK)
    here.fabric.clear("spine1")
    settled(here, lambda s: s.switches == 6 and s.amendments > 0)
    here.fabric.relink("spine1")
    here.sm.sweep()
    settled(here, lambda s: s.switches == 7)
    here.wait(lambda s: hosts_reach_each_other(here) == 0)
    here.assert_in_force(plan())
    assert here.bridge.status().engine_in_force == "sar"
    assert here.sm.log().count(FALLBACK) == fallbacks


def test_opensm_restarts_with_a_cable_gone(here: Site) -> None:
    here.sm.stop()
    here.fabric.unlink("leaf0", 5)
    here.sm.start().wait_up()
    here.wait(lambda s: s.engine_in_force != "none")
    status = settled(here, lambda s: s.amendments > 0)
    assert (status.generation_in_force, status.last_error) == (5, "")
    assert 0 < hosts_reach_each_other(here) <= 30
    assert FALLBACK not in here.sm.log(), "the log begins with the start"


def test_where_no_repair_reaches_everybody_the_next_engine_routes(here: Site) -> None:
    whole = here.bridge.fabric().digest

    def is_whole(status: PluginStatus) -> bool:
        with suppress(PluginRefused):  # a sweep is under way
            return status.settled and here.bridge.fabric().digest == whole
        return False

    here.fabric.unlink("leaf0", 5)
    settled(here, lambda s: s.amendments > 0)
    here.fabric.unlink("leaf0", 6)
    settled(here, lambda s: s.topology_changes >= 3)
    here.fabric.unlink("leaf1", 7)  # leaf0 has spine2 alone, and spine2 does not reach leaf1
    status = here.wait(lambda s: s.engine_in_force == "dfsssp")
    assert "a repair of generation 5 is not installed: invalid" in status.last_error
    assert status.repairs_refused > 0
    # The cable is back. The other engine's tables, whose paths go up again after they went down,
    # stay until a change from them is proved: by numbers that rise through both, or the agent.
    here.fabric.relink("leaf1", 7)
    here.sm.sweep()
    status = here.wait(lambda s: s.routings > status.routings and s.settled)
    ours = status.engine_in_force == "sar"
    assert ours or "nothing proves that packets" in status.last_error
    here.fabric.relink("leaf0")
    here.sm.sweep()
    here.wait(is_whole)
    assert here.load(plan(6)).generation_in_force == 6


def test_a_certificate_that_does_not_hold_is_refused(here: Site) -> None:
    routes = plan(6)
    assert routes.numbers is not None
    with pytest.raises(PluginRefused, match="the certificate does not hold") as refused:
        here.load(replace(routes, numbers=np.ones_like(routes.numbers)))
    assert refused.value.code == "invalid"
    assert here.bridge.status().generation_in_force == 5


def test_routes_in_several_lanes_are_not_repaired() -> None:
    with site(TREE) as here:
        here.load(plan(lanes=2))
        here.fabric.unlink("leaf0", 5)
        status = here.wait(lambda s: s.engine_in_force == "dfsssp")
        assert "no live link" in status.last_error and "no agent listens" in status.last_error


LFT = 25
"""The attribute LinearForwardingTable."""


def test_a_switch_that_answers_no_lft_set_while_two_cables_die(here: Site) -> None:
    """It may have its entries from before each repair. The second step of the first one waits."""
    here.fabric.drop("leaf3", 100, LFT)
    here.fabric.unlink("leaf0", 5)
    first = here.wait(lambda s: s.amendments > 0 and s.unconfirmed_switches == 1, 30)
    here.wait(lambda s: s.routings >= first.routings + 2, 60)  # OpenSM tries again by itself
    assert here.bridge.status().amendments == 1
    here.fabric.unlink("leaf1", 6)
    here.wait(lambda s: s.amendments == 2 and s.unconfirmed_switches == 1, 60)
    assert here.bridge.status().engine_in_force == "sar"
    here.fabric.drop("leaf3", 0)
    here.sm.sweep()
    settled(here, lambda s: not s.unconfirmed_switches)
    here.wait(lambda s: s.settled and s.amendments > 2, 60)
    assert here.bridge.status().engine_in_force == "sar"
    assert hosts_reach_each_other(here) > 0 and verdict(here).clean
