"""Lanes chosen hop by hop in a stock OpenSM: read back from every port, and checked by ibdmchk with
service level 0 for all paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import (
    HOPS,
    NUMBERS,
    RoutesFile,
    read_routes_file,
    write_routes_file,
)
from sar_agent.install.plan import make_plan
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import PluginClient, PluginRefused
from sar_agent.opensm.plugin_install import put_in_force
from sar_agent.routing import Routes
from sar_agent.routing.lanes.hop import hop_lanes
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibdmchk import IbdmchkVerdict, ibdmchk
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.worlds.grids import Step, by_dimension, dragonfly, routes_by, torus
from tests.worlds.live.site import is_primed, plugin

pytestmark = pytest.mark.live
SL_TO_VL = 23
MIX = JobMix.of([])


@dataclass
class Here:
    fabric: Fabric
    one: Routes
    """All in one lane: has credit loops."""
    two: Routes
    ibsim: Ibsim
    sm: OpenSM
    bridge: PluginClient

    def install(self, generation: int) -> RoutesFile:
        plan = make_plan(generation, self.fabric, MIX, self.two)
        return put_in_force(self.bridge, plan, self.sm.routes_path, None).file

    def verdict(self) -> IbdmchkVerdict:
        before, ups = self.bridge.status().routings, self.sm.log().count("SUBNET UP")
        self.sm.sweep()
        wait_for(lambda: self.bridge.status().routings > before, 20, "a sweep")
        wait_for(lambda: self.sm.log().count("SUBNET UP") > ups, 20, "the end of the sweep")
        return ibdmchk(self.sm, read_routes_file(self.bridge.dump().path), self.sm.lids())

    def lanes(self, switch: int, out: int) -> list[set[int]]:
        """By port in: the lanes of all 16 service levels, by smpquery."""
        lid = self.sm.lids()[int(self.fabric.switch_guid[switch])].start
        run = self.ibsim.run("smpquery", "sl2vl", str(lid), str(out), host="n002")
        rows = re.findall(r"^ports: in\s+(\d+), out\s+\d+: \|(.*)\|$", run.stdout, re.M)
        assert [int(port) for port, _ in rows] == list(range(len(rows))), run.stdout
        return [set(map(int, lanes.split("|"))) for _, lanes in rows]


@contextmanager
def installed(fabric: Fabric, step: Step) -> Iterator[Here]:
    one = routes_by(fabric, step)
    two = hop_lanes(fabric, one)
    assert two is not None and two.virtual_lanes == 2
    with ibsim_for(fabric) as ibsim, OpenSM(ibsim, host="n001", plugin=plugin()) as sm:
        sm.wait_up()
        bridge = PluginClient(sm.socket_path)
        wait_for(lambda: is_primed(bridge.status()), 20, "the second sweep")
        yield Here(fabric, one, two, ibsim, sm, bridge)


@pytest.mark.parametrize("name", ["ring", "dragonfly"])
def test_installed_read_back_and_clean_whatever_the_level(name: str) -> None:
    grid = (torus((5,)), by_dimension((5,))) if name == "ring" else dragonfly(2, 2)
    with installed(*grid) as here:
        found = here.install(3)
        wanted, got = here.two.hop_lane, found.hop_lanes
        assert wanted is not None and got is not None and found.flags == HOPS | NUMBERS
        assert np.array_equal(got, wanted[np.argsort(here.fabric.switch_guid)])
        assert here.bridge.status().lanes == 2
        seen = set()
        for s in range(here.fabric.switches):
            for c in range(here.fabric.channel_offset[s], here.fabric.channel_offset[s + 1]):
                out = int(here.fabric.channel_port[c])
                for entry, lanes in enumerate(here.lanes(s, out)):
                    assert lanes == {int(wanted[s, entry, out])}, (s, entry, out)
                    seen |= lanes
        assert seen == {0, 1}
        lids = [str(here.sm.lids()[int(guid)].start) for guid in here.fabric.terminal_guid[:3]]
        path = here.ibsim.run("saquery", "PR", "--slid", lids[0], "--dlid", lids[2], host="n002")
        assert re.search(r"^\s*sl\.*\s*0x0$", path.stdout, re.M), path.stdout
        two = here.verdict()
        assert two.clean and two.lanes == 2, two.text[-1500:]
        # The same tables without them: the ports' order alone does not save anybody.
        write_routes_file(here.sm.next_path, routes_to_file(here.fabric, here.one, 4))
        here.bridge.load(4, None)
        assert not here.verdict().clean


def test_a_table_that_a_switch_did_not_take_keeps_them_from_being_in_force() -> None:
    with installed(torus((5,)), by_dimension((5,))) as here:
        assert here.two.hop_lane is not None
        s = int(np.flatnonzero(here.two.hop_lane.any(axis=(1, 2)))[0])
        here.ibsim.drop(here.fabric.switch_name[s], 100, SL_TO_VL)
        with pytest.raises(PluginRefused, match=r"\d port\(s\) their lanes") as refused:
            here.install(3)
        assert refused.value.code == "unconfirmed"
        assert here.bridge.status().unconfirmed_sl2vl_ports == 3
        here.ibsim.drop(here.fabric.switch_name[s], 0)
        here.sm.sweep()
        wait_for(lambda: here.bridge.status().settled, 20, "an answer")


def test_a_cable_in_another_port_makes_them_stale() -> None:
    fabric = torus((5,))
    wider = replace(fabric, switch_ports=fabric.switch_ports + 2)
    with installed(wider, by_dimension((5,))) as here:
        here.install(3)
        here.ibsim.unlink("s0", 2)
        here.ibsim.link("s0", 2, "s1", 4)
        here.sm.sweep()
        with pytest.raises(SarError, match="ends elsewhere than in the fabric of the routes"):
            write_routes_file(here.sm.next_path, routes_to_file(here.fabric, here.two, 4))
            here.bridge.load(4, None)
