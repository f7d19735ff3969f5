"""The plugin's life: starting, refusing to start, restarting, standing by, taking over."""

from __future__ import annotations

import contextlib
import grp
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sar_agent.errors import SarError, Unavailable
from sar_agent.formats.routes_file import write_routes_file
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.worlds.live import readback
from tests.worlds.live.fat_tree import FatTree
from tests.worlds.live.site import Site, plugin, site

pytestmark = pytest.mark.live


@pytest.mark.parametrize(
    ("library", "arguments", "logged"),
    [
        ("libsarbridge-wrong.so", {}, "OpenSM version mismatch"),
        ("libsarbridge.so", {"plugin_options": "dri=/tmp"}, 'not loaded: unknown option "dri"'),
        ("libsarbridge.so", {"plugin_options": "dir=/proc/no"}, "cannot make /proc/no"),
        ("libsarbridge.so", {"options": {"use_ucast_cache": "TRUE"}}, "use_ucast_cache"),
    ],
)
def test_a_plugin_that_cannot_work_is_refused_and_opensm_goes_on(
    library: str, arguments: dict[str, Any], logged: str
) -> None:
    with (
        Ibsim(FatTree().net()) as fabric,
        OpenSM(fabric, host="n001", plugin=plugin(library), **arguments) as sm,
    ):
        sm.wait_up()
        assert logged in sm.log()
        assert "ERR 1000" in sm.log()
        assert "dfsssp tables configured" in sm.log()
        assert sm.alive() and not sm.socket_path.exists()
        with pytest.raises(Unavailable):
            PluginClient(sm.socket_path).status()


def test_loading_the_plugin_changes_no_entry_and_no_lid() -> None:
    """The restart of docs/go-live.md: a site's ftree, then the plugin with nothing to load."""
    with site(plugin=None, routing_engine="ftree,updn") as here:
        before, lids = readback.installed(here.fabric), here.lids()
        here.sm.stop()
        here.sm.load_plugin(plugin(), "sar,ftree,updn")
        here.sm.start().wait_up()
        here.wait_primed()
        assert "ftree tables configured" in here.sm.log()
        assert before == readback.installed(here.fabric)
        assert here.lids() == lids


def test_the_socket_is_for_its_group_alone(tmp_path: Path) -> None:
    with site(plugin_options=f"dir={tmp_path} group=daemon", run_dir=tmp_path) as here:
        info = here.sm.socket_path.stat()
        assert (info.st_mode & 0o777, info.st_gid) == (0o660, grp.getgrnam("daemon").gr_gid)


def test_a_clean_stop_leaves_nothing_and_a_restart_installs_at_once() -> None:
    with site() as here:
        routes = here.tree.routes(5, shift=1)
        here.load(routes)
        assert here.sm.stop() == 0
        assert not here.sm.socket_path.exists()
        write_routes_file(here.sm.next_path, here.tree.routes(9))  # of an agent that was killed
        here.sm.start().wait_up()
        status = here.wait_primed()
        assert (status.generation_in_force, status.state) == (5, "built")
        assert "dfsssp tables" not in here.sm.log()
        here.assert_in_force(routes)


def test_a_crash_leaves_a_socket_that_the_next_start_replaces() -> None:
    with site() as here:
        here.load(here.tree.routes(5))
        here.sm.kill()
        assert here.sm.socket_path.exists()
        with pytest.raises(Unavailable, match="Connection refused"):
            here.bridge.load(5, None)
        here.sm.start().wait_up()
        assert here.wait_primed().generation_in_force == 5


def test_two_plugins_do_not_share_a_socket() -> None:
    with site() as here:
        second = OpenSM(
            here.fabric, host="n010", plugin=plugin(), run_dir=here.sm.run_dir, priority=0
        )
        with second:
            second.wait_log("another OpenSM already listens")
            second.wait_log("Entering STANDBY")
            assert here.bridge.status().pid == here.sm.pid
        assert here.bridge.status().pid == here.sm.pid


def test_a_standby_answers_and_takes_over_with_our_routes() -> None:
    with site(priority=5) as here, contextlib.ExitStack() as stack:
        here.load(here.tree.routes(5))
        standby = OpenSM(here.fabric, host="n010", plugin=plugin(), priority=1)
        stack.enter_context(standby)
        other = Site(here.tree, here.fabric, standby, PluginClient(standby.socket_path))
        other.wait(lambda s: s.sm_state == "standby")
        with pytest.raises(SarError, match="is not the master, so it has no subscribers"):
            other.bridge.notice("unpath", 1, 4)
        routes = here.tree.routes(6, shift=1)
        with pytest.raises(SarError, match="this OpenSM is not the master"):
            other.load(routes)
        assert other.bridge.status().generation_in_force == 0
        newer = here.tree.routes(7, shift=2)  # nobody tells the standby of this one
        write_routes_file(standby.routes_path, newer)

        here.sm.kill()
        status = other.wait(lambda s: s.sm_state == "master" and s.generation_in_force > 0, 30)
        assert (status.engine_in_force, status.generation_in_force) == ("sar", 7)
        lids = readback.lids(standby.folder / "cache")
        wait_for(
            lambda: readback.installed(here.fabric) == readback.wanted(newer, lids), 10, "tables"
        )


def test_a_master_again_believes_nothing_that_it_knew_before() -> None:
    """Another OpenSM was the master meanwhile, so the switches do not have what this one sent. It
    still has its copies, and its routes must not be compared with these."""
    with site(priority=5) as here, contextlib.ExitStack() as stack:
        here.load(here.tree.routes(5))
        standby = OpenSM(here.fabric, host="n010", plugin=plugin(), priority=1)
        stack.enter_context(standby)
        other = Site(here.tree, here.fabric, standby, PluginClient(standby.socket_path))
        other.wait(lambda s: s.sm_state == "standby")
        newer = here.tree.routes(6, shift=1)
        write_routes_file(standby.routes_path, newer)
        write_routes_file(here.sm.routes_path, newer)
        os.kill(here.sm.pid, signal.SIGSTOP)
        other.wait(lambda s: s.sm_state == "master" and s.generation_in_force == 6, 60)
        os.kill(here.sm.pid, signal.SIGCONT)
        here.sm.sweep()
        other.wait(lambda s: s.sm_state == "standby", 60)
        status = here.wait(lambda s: s.generation_in_force != 5 and s.settled, 30)
        assert (status.engine_in_force, status.generation_in_force) == ("sar", 6), status.last_error
        assert "nothing proves that packets" not in here.sm.log()
        here.assert_in_force(newer)


@pytest.mark.parametrize("found", [4, 6])
def test_a_master_that_comes_back_takes_the_file_but_no_lower_generation(found: int) -> None:
    """The SM's own cable is pulled: it is no master any more until the cable is back. It does not
    know what the switches have then, so it uses nothing but the file."""
    with site() as here:
        here.load(here.tree.routes(5))
        write_routes_file(here.sm.routes_path, here.tree.routes(found, shift=1))
        here.fabric.unlink("n001", 1)
        here.sm.sweep()
        here.wait(lambda s: s.sm_state != "master", 30)
        here.fabric.relink("n001", 1)
        here.sm.sweep()
        here.wait(lambda s: s.sm_state == "master" and s.settled and s.hca_ports == 16, 30)
        refused = "holds generation 4, and 5 has been in force already" in here.sm.log()
        assert refused == (found == 4)
        status = here.bridge.status()
        if refused:
            assert status.engine_in_force == "dfsssp"
            assert "nothing is known of the switches' tables" in here.sm.log()
        else:
            assert status.generation_in_force == found
            here.assert_in_force(here.tree.routes(found, shift=1))
