"""The fabric changes under the routes: what stays in force, what takes over, what status says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sar_agent.errors import SarError
from sar_agent.fabric.opensm_file import read_opensm_fabric
from sar_agent.formats.routes_file import write_routes_file
from sar_agent.opensm.plugin_client import PluginRefused
from tests.worlds.live import readback
from tests.worlds.live.site import Site, site

pytestmark = pytest.mark.live


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as made:
        made.load(made.tree.routes(5))
        yield made


def channels(here: Site) -> int:
    """Those between switches, as OpenSM last discovered them; 0 while it sweeps."""
    with suppress(SarError):
        return read_opensm_fabric(here.bridge.fabric().path).fabric.channels
    return 0


def test_a_dead_link_brings_the_fallback_and_a_load_brings_us_back(here: Site) -> None:
    before = here.bridge.status()
    here.fabric.unlink("leaf0", 5)
    status = here.wait(lambda s: s.engine_in_force != "sar")
    assert (status.engine_in_force, status.generation_in_force) == ("dfsssp", 0)
    assert status.settled and status.generation_loaded == 5
    assert "stale" in status.last_error and "leaf0" in status.last_error
    assert "by port 5" in status.last_error or "by port 1" in status.last_error
    assert status.heavy_sweeps <= before.heavy_sweeps + 2, "within a sweep (two: one trap an end)"
    assert status.topology_changes == before.topology_changes + 1
    assert "the next routing engine takes over" in here.sm.log()
    with pytest.raises(PluginRefused, match=r"engine dfsssp is in force: stale") as refused:
        here.load(here.tree.routes(5))
    assert refused.value.code == "stale"

    # These routes have no certificate, so nothing proves the change back: a load does it.
    here.fabric.relink("leaf0", 5)
    here.sm.sweep()
    here.wait(lambda s: s.routings > status.routings and s.settled)
    assert here.bridge.status().engine_in_force == "dfsssp"
    assert here.load(here.tree.routes(6)).generation_in_force == 6
    here.assert_in_force(here.tree.routes(6))


def test_new_routes_around_a_dead_link(here: Site) -> None:
    here.fabric.unlink("leaf0", 5)
    here.wait(lambda s: s.engine_in_force == "dfsssp")
    around = here.tree.routes(6, cut=frozenset({("leaf0", 5)}))
    assert here.load(around).generation_in_force == 6
    here.assert_in_force(around)


def test_the_older_generation_is_used_when_the_newest_does_not_fit(here: Site) -> None:
    around = here.tree.routes(6, cut=frozenset({("leaf0", 5)}))
    here.load(around)
    here.fabric.unlink("leaf0", 5)
    here.wait(lambda s: s.topology_changes >= 2)
    with pytest.raises(SarError, match="generation 6 stays in force: stale"):
        here.load(here.tree.routes(7))
    here.assert_in_force(around)
    status = here.bridge.status()
    assert (status.generation_in_force, status.generation_loaded) == (6, 6)


def test_a_node_that_loses_power_changes_nothing(here: Site) -> None:
    here.fabric.clear("n007")
    status = here.wait(lambda s: s.vanished_terminals == 1)
    assert (status.generation_in_force, status.last_error) == (5, "")
    assert status.hca_ports == 15
    here.fabric.relink("n007", 1)
    here.wait(lambda s: s.vanished_terminals == 0 and s.hca_ports == 16)
    here.assert_in_force(here.tree.routes(5))


def reaches(here: Site, source: str, target: str) -> list[int]:
    """The egress ports of the switches on the way, as ibtracert walks the installed tables."""
    text = here.tool("ibtracert", str(here.lid(source)), str(here.lid(target)))
    lines = [line for line in text.splitlines() if line.startswith("[")]
    assert target in lines[-1], text
    return [int(line.split("]")[0][1:]) for line in lines[1:]]


def test_an_unknown_node_is_routed_like_its_leaf_switch(here: Site) -> None:
    here.load(here.tree.routes(6, without=frozenset({"n016"}), lanes=2))
    status = here.bridge.status()
    assert (status.engine_in_force, status.unknown_terminals) == ("sar", 1)
    leaf, node = here.lid("leaf3"), here.lid("n016")
    tables = readback.installed(here.fabric)
    for name, guid in here.tree.switches().items():
        assert tables[guid, node] == (4 if name == "leaf3" else tables[guid, leaf])
    assert len(reaches(here, "n001", "n016")) == 3
    here.load(here.tree.routes(7))
    assert here.bridge.status().unknown_terminals == 0


def test_a_node_that_moved_is_found_where_it_is(here: Site) -> None:
    here.fabric.unlink("n016", 1)
    here.wait(lambda s: s.vanished_terminals == 1)
    here.fabric.link("leaf1", 11, "n016", 1)
    here.sm.sweep()
    # Its LID has no routes until packets by the former ones are gone.
    status = here.wait(lambda s: s.unknown_terminals == 1 and not s.repair_drops and s.settled)
    assert (status.generation_in_force, status.vanished_terminals) == (5, 0)
    assert reaches(here, "n001", "n016")[-1] == 11
    assert here.dumped().terminal_leaf.tolist()[-1] == 1


def test_a_switch_that_the_file_does_not_know(here: Site) -> None:
    smaller = here.tree.routes(6)
    unknown = smaller.switch_guids[-1]
    smaller.switch_guids[-1] = unknown + 77
    with pytest.raises(SarError, match=rf"switch {int(unknown):#018x} \(spine1\) is not in"):
        here.load(smaller)
    assert here.bridge.status().generation_in_force == 5


@pytest.mark.parametrize("name", ["routes.sar", "routes.next"])
def test_a_file_put_in_place_unannounced_is_not_taken(here: Site, name: str) -> None:
    write_routes_file(here.sm.run_dir / name, here.tree.routes(6, shift=1))
    before = here.bridge.status()
    here.fabric.clear("n007")  # a host's reboot
    here.wait(lambda s: s.routings > before.routings and s.settled and s.vanished_terminals == 1)
    here.sm.sweep()
    here.wait(lambda s: s.routings > before.routings + 1 and s.settled)
    here.fabric.relink("n007", 1)
    here.wait(lambda s: s.hca_ports == 16 and s.vanished_terminals == 0 and s.settled)
    assert here.bridge.status().generation_in_force == 5
    here.assert_in_force(here.tree.routes(5))


def test_a_load_that_was_refused_is_never_tried_again(here: Site) -> None:
    """The file fits once the cable is back, but OpenSM does not try it again."""
    here.fabric.unlink("leaf0", 5)
    here.wait(lambda s: s.engine_in_force == "dfsssp" and s.settled)
    with pytest.raises(PluginRefused, match="stale"):
        here.load(here.tree.routes(6, shift=1))
    routings = here.bridge.status().routings
    here.fabric.relink("leaf0", 5)
    here.sm.sweep()
    status = here.wait(lambda s: s.routings > routings and s.settled)
    assert status.generation_in_force in (0, 5) and status.generation_loaded == 5


def test_a_cable_plugged_elsewhere_makes_any_file_stale(here: Site) -> None:
    """All are still reached: leaf0 and leaf1 have one spine each for the other's."""
    whole = channels(here)
    for leaf in ("leaf0", "leaf1"):
        here.fabric.unlink(leaf, 5)
    here.wait(lambda s: s.engine_in_force == "dfsssp" and s.settled)
    here.fabric.link("leaf0", 5, "spine0", 2)
    here.fabric.link("leaf1", 5, "spine0", 1)
    here.sm.sweep()
    here.wait(lambda s: s.settled and channels(here) == whole)
    with pytest.raises(PluginRefused, match=r"cable at port 5 of switch .*leaf0.* ends elsewhere"):
        here.load(here.tree.routes(6))


def test_a_host_where_nobody_was_proved_to_send(here: Site) -> None:
    here.fabric.unlink("n016", 1)
    here.wait(lambda s: s.vanished_terminals == 1 and s.settled)
    here.fabric.link("spine0", 11, "n016", 1)
    here.sm.sweep()
    status = here.wait(lambda s: s.engine_in_force == "dfsssp" and s.settled)
    assert re.search(
        r"is a host at switch \w+ \(spine0\), where the plan was not", status.last_error
    )
