"""Routes files through the plugin into a simulated fabric, read back with other people's tools."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

from sar_agent.errors import SarError
from sar_agent.formats.routes_file import write_routes_file
from sar_agent.opensm.plugin_client import PluginRefused
from sar_lab.live.process import PATIENCE
from tests.worlds.live.readback import service_level
from tests.worlds.live.site import Site, site

pytestmark = pytest.mark.live
LINEAR_FORWARDING_TABLE, SL_TO_VL = 25, 23


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as made:
        yield made


def test_before_the_first_file_another_engine_routes_and_status_says_why(here: Site) -> None:
    status = here.bridge.status()
    assert (status.engine_in_force, status.generation_in_force) == ("dfsssp", 0)
    assert status.state == "built" and "No such file" in status.last_error
    assert status.settled and 0.5 < status.head_of_queue_seconds < 2
    assert (status.switches, status.hca_ports, status.sm_state) == (6, 16, "master")
    assert status.pid == here.sm.pid
    assert here.dumped().engine == "dfsssp"


@pytest.mark.parametrize(("lmc", "offsets"), [(0, 1), (1, 2), (2, 3)])
def test_every_entry_of_the_file_is_installed(lmc: int, offsets: int) -> None:
    with site(options={"lmc": str(lmc), "lmc_esp0": "TRUE"}) as here:
        for generation, shift in ((3, 0), (4, 1)):
            routes = here.tree.routes(generation, shift=shift, offsets=offsets)
            loaded = here.load(routes)
            assert (loaded.engine_in_force, loaded.generation_in_force) == ("sar", generation)
            here.assert_in_force(routes)
        status = here.bridge.status()
        assert (status.state, status.last_error, status.lmc) == ("built", "", lmc)
        assert status.routes_engine == "test" and status.unknown_terminals == 0


def test_the_dump_is_the_file_again(here: Site) -> None:
    routes = here.tree.routes(9, lanes=2)
    here.load(routes)
    dumped = here.dumped()
    for name in ("switch_guids", "terminal_guids", "terminal_leaf", "switch_ports", "forwarding"):
        assert np.array_equal(getattr(dumped, name), getattr(routes, name)), name
    assert (dumped.generation, dumped.engine, dumped.lanes) == (9, "test", 2)
    assert routes.service_levels is not None and dumped.service_levels is not None
    assert np.array_equal(dumped.sl_to_vl, routes.sl_to_vl)
    # From a switch to itself no path is asked for; all others are as the file says.
    others = routes.forwarding != 0
    assert np.array_equal(dumped.service_levels[others], routes.service_levels[others])


def test_only_blocks_that_changed_are_sent(here: Site) -> None:
    here.load(here.tree.routes(1))
    before = here.bridge.status().lft_blocks_confirmed
    here.load(here.tree.routes(2))
    assert here.bridge.status().lft_blocks_confirmed == before
    routes = here.tree.routes(3)
    row = list(here.tree.switches()).index("leaf0")
    column = list(here.tree.terminals()).index("n016")
    routes.forwarding[0, row, column] = 11 - routes.forwarding[0, row, column]  # 5 <-> 6
    here.load(routes)
    assert here.bridge.status().lft_blocks_confirmed == before + 1
    here.assert_in_force(routes)


def test_service_levels_and_lanes_are_the_files(here: Site) -> None:
    routes = here.tree.routes(5, lanes=2)
    here.load(routes)
    assert here.bridge.status().lanes == 2
    assert routes.service_levels is not None and routes.sl_to_vl is not None
    hosts = list(here.tree.terminals())
    for source, target in (("n001", "n016"), ("n006", "n003"), ("n016", "n015")):
        leaf = routes.terminal_leaf[hosts.index(source)]
        expected = routes.service_levels[0, leaf, hosts.index(target)]
        assert service_level(here, source, target) == expected

    lanes = "".join(f"{lane:2d}|" for lane in routes.sl_to_vl)
    for where in (["n007"], ["leaf1", "5"], ["spine0", "2"]):
        port = [str(here.lid(where[0])), *where[1:]]
        rows = re.findall(r"^ports: .*: \|(.*)$", here.tool("smpquery", "sl2vl", *port), re.M)
        assert rows and set(rows) == {lanes}
        arbitration = here.tool("smpquery", "vlarb", *port)
        low = re.search(r"Low priority.*\nVL    : \|(.*)\|\nWEIGHT: \|(.*)\|", arbitration)
        assert low, arbitration
        weights = dict.fromkeys(range(2), 0)
        for lane, weight in zip(low[1].split("|"), low[2].split("|"), strict=True):
            weights[int(lane, 16)] += int(weight, 16)
        assert weights[0] == weights[1] > 0


def test_levels_that_the_plan_drops_are_dropped_by_every_port(here: Site) -> None:
    routes = here.tree.routes(5, lanes=2)
    assert routes.sl_to_vl is not None
    routes.sl_to_vl[[7, 15]] = 15
    here.load(routes)
    assert here.bridge.status().settled
    assert np.array_equal(here.dumped().sl_to_vl, routes.sl_to_vl)
    lanes = "".join(f"{lane:2d}|" for lane in routes.sl_to_vl)
    for where in (["n007"], ["leaf1", "5"], ["spine0", "2"]):
        text = here.tool("smpquery", "sl2vl", str(here.lid(where[0])), *where[1:])
        assert set(re.findall(r"^ports: .*: \|(.*)$", text, re.M)) == {lanes}


def test_lanes_that_a_switch_does_not_confirm_make_the_load_fail(here: Site) -> None:
    """Lanes by path: the tables that forward are all confirmed."""
    here.load(here.tree.routes(5))
    here.fabric.drop("leaf3", 100, SL_TO_VL)
    routes = here.tree.routes(6, lanes=2)
    with pytest.raises(PluginRefused, match=r"and 6 port\(s\) their lanes") as refused:
        here.load(routes)
    assert refused.value.code == "unconfirmed"
    status = here.wait(lambda s: s.state == "built")
    assert status.unconfirmed_switches == 0 and status.unconfirmed_sl2vl_ports == 6
    assert not status.settled and here.bridge.dump().unconfirmed_sl2vl_ports == 6
    here.fabric.drop("leaf3", 0)
    here.sm.sweep()
    here.wait(lambda s: s.settled)
    here.assert_in_force(routes)


def test_a_corrupt_file_changes_nothing(here: Site) -> None:
    good = here.tree.routes(5)
    here.load(good)
    image = bytearray(here.sm.routes_path.read_bytes())
    image[-3] ^= 1
    here.sm.next_path.write_bytes(image)
    with pytest.raises(
        PluginRefused, match=r"routes\.next is invalid: bad payload checksum"
    ) as refused:
        here.bridge.load(6, None)
    assert refused.value.code == "invalid"
    status = here.bridge.status()
    assert (status.state, status.generation_in_force) == ("built", 5)
    assert "checksum" in status.last_error
    here.sm.sweep()
    here.wait(lambda s: s.heavy_sweeps > status.heavy_sweeps and s.routings > status.routings)
    here.assert_in_force(good)
    here.sm.next_path.unlink()
    with pytest.raises(PluginRefused, match="No such file"):
        here.bridge.load(7, None)
    here.assert_in_force(good)


def test_another_generation_than_asked_for_is_refused(here: Site) -> None:
    here.load(here.tree.routes(5))
    write_routes_file(here.sm.next_path, here.tree.routes(6))
    with pytest.raises(PluginRefused, match="holds generation 6, not 7"):
        here.bridge.load(7, None)
    assert here.bridge.status().generation_in_force == 5
    assert here.bridge.load(6, None).generation_in_force == 6


def test_routes_that_loop_are_refused_with_the_switch_named(here: Site) -> None:
    here.load(here.tree.routes(5))
    routes = here.tree.routes(6)
    switches, hosts = list(here.tree.switches()), list(here.tree.terminals())
    routes.forwarding[0, switches.index("leaf0"), hosts.index("n016")] = 5  # up to spine0 …
    routes.forwarding[0, switches.index("spine0"), hosts.index("n016")] = 1  # … and back down
    with pytest.raises(SarError, match=r"generation 5 stays in force: invalid: .* loops .*leaf0"):
        here.load(routes)
    here.assert_in_force(here.tree.routes(5))


def test_a_switch_that_does_not_confirm_makes_the_load_fail() -> None:
    quick = {"transaction_timeout": "50", "transaction_retries": "1"}
    with site(options=quick) as here:
        here.load(here.tree.routes(5))
        here.fabric.drop("leaf3", 100, LINEAR_FORWARDING_TABLE)
        routes = here.tree.routes(6, shift=1)
        with pytest.raises(
            PluginRefused, match=r"1 switch\(es\) have not confirmed their tables"
        ) as refused:
            here.load(routes)
        assert refused.value.code == "unconfirmed"
        status = here.wait(lambda s: s.state == "built")
        assert (status.unconfirmed_switches, status.unconfirmed_lft_blocks) == (1, 1)
        assert not status.settled
        leaf3 = list(here.tree.switches()).index("leaf3")
        dumped, before = here.dumped(), here.tree.routes(5)
        assert np.array_equal(dumped.forwarding, routes.forwarding), "what was sent last"
        assert dumped.had is not None
        assert np.array_equal(dumped.had[0, leaf3], before.forwarding[0, leaf3]), "or what it had"
        others = np.arange(len(routes.switch_guids)) != leaf3
        assert np.array_equal(dumped.had[0, others], routes.forwarding[0, others])

        with pytest.raises(PluginRefused, match="have not confirmed"):
            here.load(here.tree.routes(7, lanes=1, cut=frozenset({("leaf3", 5)})))
        here.wait(lambda s: s.state == "built")
        third = here.dumped()
        assert third.had is not None
        moved = routes.forwarding[0, leaf3] != before.forwarding[0, leaf3]
        assert moved.sum() > 12
        assert set(third.forwarding[0, leaf3, moved]) == {6} and set(
            third.had[0, leaf3, moved]
        ) == {5}
        assert np.array_equal(third.had[0, leaf3, ~moved], before.forwarding[0, leaf3, ~moved])
        here.fabric.drop("leaf3", 0)
        here.sm.sweep()
        here.wait(lambda s: s.settled)
        assert here.dumped().had is None
        here.assert_in_force(here.tree.routes(7, cut=frozenset({("leaf3", 5)})))


def test_sigusr2_loads_what_the_file_holds(here: Site) -> None:
    routes = here.tree.routes(8, shift=1)
    write_routes_file(here.sm.next_path, routes)
    os.kill(here.sm.pid, signal.SIGUSR2)
    here.wait(lambda s: s.generation_in_force == 8)
    here.assert_in_force(routes)


def test_multicast_works_after_a_reroute(here: Site) -> None:
    """Hop counts are ours after a load, and multicast trees are built from them: a member that
    joins then must be connected, and those from before must stay so."""
    for host in ("n003", "n006"):
        here.join_broadcast(host)
    here.load(here.tree.routes(5, shift=1))
    here.join_broadcast("n016")
    members = {"leaf0": 3, "leaf1": 2, "leaf3": 4}
    # OpenSM builds the tree some time after it said yes
    deadline = time.monotonic() + 10 * PATIENCE
    while not all(port in (tree := here.multicast())[leaf] for leaf, port in members.items()):
        assert time.monotonic() < deadline, tree
    tops = [spine for spine in ("spine0", "spine1") if tree[spine]]
    assert len(tops) == 1, f"one tree through one spine: {tree}"
    assert tree[tops[0]] == {1, 2, 4}
    assert "ff12:401b:ffff::ffff:ffff" in here.tool("saquery", "MCMR")
    here.sm.sweep()
    here.wait(lambda s: s.heavy_sweeps >= 3)
    assert here.multicast()["leaf3"] == tree["leaf3"]


def test_clients_do_not_wait_for_each_other(here: Site) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(6)]
    for client in silent:
        client.connect(str(here.sm.socket_path))
    assert here.bridge.status().state == "built"
    for client in silent:
        client.close()
    with socket.socket(socket.AF_UNIX) as talker:
        talker.connect(str(here.sm.socket_path))
        talker.sendall(b"x" * 10_000)  # never a newline
        assert here.bridge.status().pid == here.sm.pid
    for request, expected in (
        (b"hello\n", b"unknown request"),
        (b"load x any\n", b"a number"),
        (b"load 7\n", b"digest"),
    ):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(here.sm.socket_path))
            client.sendall(request)
            assert expected in client.recv(1000)
