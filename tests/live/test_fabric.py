"""The fabric that OpenSM's plugin tells is the one that ibnetdiscover sees: the same digest, the
same arrays, before and after cables, hosts and a switch went and came back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError, SarError
from sar_agent.fabric import Fabric, Kind
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids, write_ibsim_net
from sar_agent.fabric.opensm_file import decode_opensm_fabric, read_opensm_fabric
from sar_agent.fabric.spec import load_fabric, parse_fabric
from sar_agent.opensm.plugin_client import FabricAnswer, PluginClient
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.data import data_path
from tests.worlds.fabric_texts import SMALL, differences, in_order_of_guids
from tests.worlds.live.site import plugin

pytestmark = pytest.mark.live


@dataclass
class Seen:
    """A simulated fabric, and what is known of it from both sides."""

    made: Fabric
    ibsim: Ibsim
    sm: OpenSM
    host: str

    @property
    def bridge(self) -> PluginClient:
        return PluginClient(self.sm.socket_path)

    def by_plugin(self) -> Fabric:
        """As the agent does: where OpenSM is busy, ask again."""
        told: list[FabricAnswer] = []

        def ask() -> bool:
            try:
                told.append(self.bridge.fabric())
            except SarError as error:
                if not str(error).endswith("ask again"):
                    raise
            return bool(told)

        wait_for(ask, 120, "an answer to fabric", alive=self.sm.alive)
        fabric, digest = read_opensm_fabric(told[-1].path)
        assert digest == told[-1].digest
        return fabric

    def by_ibnetdiscover(self) -> Fabric:
        return read_ibnetdiscover(self.ibsim.run("ibnetdiscover", host=self.host).stdout)

    def wait_for(self, holds: Callable[[Fabric], bool]) -> None:
        """Until the plugin tells such a fabric; then both sources tell one and the same."""
        wait_for(lambda: holds(self.by_plugin()), 60, "the fabric", alive=self.sm.alive)
        self.assert_both_agree()

    def assert_both_agree(self) -> None:
        ours, theirs = self.by_plugin(), self.by_ibnetdiscover()
        assert ours.digest == theirs.digest
        assert differences(in_order_of_guids(ours), in_order_of_guids(theirs)) == []

    def answers(self, until: Callable[[], bool]) -> list[Fabric]:
        """Asks without a pause; returns every fabric that was answered until then."""
        images = []
        while not until():
            for _ in range(20):
                with contextlib.suppress(SarError):
                    images.append(self.bridge.fabric().path.read_bytes())
        return [decode_opensm_fabric(image).fabric for image in images]


@contextlib.contextmanager
def seen(fabric: Fabric, folder: Path, *, up: bool = True, **options: str) -> Iterator[Seen]:
    """With `up` OpenSM has finished its first sweep."""
    net = folder / "fabric.net"
    write_ibsim_net(fabric, net)
    host = net_ids(fabric)[1][int(np.flatnonzero(fabric.terminal_up)[0])]
    with (
        Ibsim(net) as ibsim,
        # dfsssp takes a minute for the largest of the real ones.
        OpenSM(
            ibsim, host=host, plugin=plugin(), options=options, routing_engine="sar,minhop"
        ) as sm,
    ):
        if up:
            sm.wait_up(600)
        yield Seen(fabric, ibsim, sm, host)


def chain(switches: int) -> Fabric:
    """Switches in a row, one host each: OpenSM discovers it hop by hop."""
    builder = FabricBuilder("chain")
    for s in range(switches):
        builder.add_switch(0x1000 + 16 * s, f"s{s}", 4)
        builder.add_terminal(0x100001 + 16 * s, f"n{s:03} HCA-1", f"n{s:03}", s, 1)
    for s in range(1, switches):
        builder.add_link(s - 1, 2, s, 3)
    return builder.build()


@pytest.mark.parametrize(
    "spec", ["xgft:2;4,4;1,2", "xgft:3;2,2,2;1,2,2", "torus:3x3x3", "dragonfly:a=4,p=2,h=2"]
)
def test_generated(spec: str, tmp_path: Path) -> None:
    made = load_fabric(spec)
    with seen(made, tmp_path, lmc="1") as here:
        here.assert_both_agree()
        ours = here.by_plugin()
        assert ours.digest == made.digest
        assert (ours.lmc, ours.notes) == (1, ())
        assert sorted(ours.terminal_host) == sorted(made.terminal_host)


def test_plugin_and_ibnetdiscover_agree_on_units_rails_and_parallel_cables(tmp_path: Path) -> None:
    """An aggregation unit, two rails, parallel cables, a host without a name; to ibsim a router
    is a host."""
    with seen(read_ibnetdiscover(SMALL), tmp_path) as here:
        here.assert_both_agree()
        ours = here.by_plugin()
        assert sorted(ours.terminal_kind.tolist()) == [Kind.COMPUTE] * 5 + [Kind.IN_SWITCH]


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "psmn-x5",
        "small-2014",
        "dgx-ndr",
        "selene-storage",
        pytest.param("director-notabs", marks=pytest.mark.long),
    ],
)
def test_real(name: str, tmp_path: Path) -> None:
    made = load_fabric(data_path(f"{name}.ibnetdiscover"))
    with seen(made, tmp_path) as here:
        here.assert_both_agree()
        assert here.by_plugin().digest == made.digest


def test_cables_hosts_and_a_switch_go_and_come_back(tmp_path: Path) -> None:
    made = load_fabric("xgft:2;4,4;1,2")
    with seen(made, tmp_path) as here:
        whole = here.by_plugin()
        here.assert_both_agree()
        here.ibsim.unlink("S1-0", 5)
        here.wait_for(lambda f: f.channels == whole.channels - 2)
        here.ibsim.unlink("n016", 1)
        here.ibsim.unlink("n007", 1)
        here.wait_for(lambda f: f.terminals == whole.terminals - 2)
        here.ibsim.relink("S1-0", 5)
        here.wait_for(lambda f: f.channels == whole.channels)
        here.ibsim.clear("S2-1")
        here.wait_for(lambda f: f.switches == whole.switches - 1)
        for node, ports in (("n016", [1]), ("n007", [1]), ("S2-1", [1, 2, 3, 4])):
            for port in ports:
                here.ibsim.relink(node, port)
        here.wait_for(lambda f: f.digest == whole.digest)
        assert differences(in_order_of_guids(here.by_plugin()), in_order_of_guids(whole)) == []


def assert_whole(fabric: Fabric, known: set[bytes]) -> None:
    """One of the fabrics that there really were, with all LIDs and names."""
    assert fabric.digest in known, (fabric.switches, fabric.terminals)
    assert (fabric.terminal_lid > 0).all() and (fabric.switch_lid > 0).all()
    assert all(fabric.terminal_description) and fabric.notes == ()


def test_nothing_between_is_told_while_opensm_starts(tmp_path: Path) -> None:
    made = chain(24)
    with seen(made, tmp_path, up=False) as here:
        wait_for(here.sm.socket_path.exists, 30, "the plugin", alive=here.sm.alive)
        told = here.answers(lambda: here.sm.log().count("SUBNET UP") >= 2)
        told.append(here.by_plugin())  # a busy machine may have asked nobody before
        for fabric in told:
            assert_whole(fabric, {made.digest})


def test_a_standby_says_that_it_is_none_to_ask(tmp_path: Path) -> None:
    made = load_fabric("xgft:2;4,4;1,2")
    with seen(made, tmp_path, sm_priority="5") as here, contextlib.ExitStack() as stack:
        standby = OpenSM(here.ibsim, host="n010", plugin=plugin(), priority=1)
        stack.enter_context(standby)
        second = Seen(made, here.ibsim, standby, "n010")
        standby.wait_log("Entering STANDBY")
        with pytest.raises(SarError, match=r"this OpenSM is not the master .* ask the master"):
            second.bridge.fabric()
        # Not its takeover: under ibsim that may take for ever, without our plugin, too.


TWO_PORTS = """\
Switch 8 "S1"
[1] "H1"[1]
[2] "H2"[1]
[3] "S2"[3]

Switch 8 "S2"
[1] "H1"[2]
[2] "H2"[2]
[3] "S1"[3]

Hca 2 "H1"
[1] "S1"[1]
[2] "S2"[1]

Hca 2 "H2"
[1] "S1"[2]
[2] "S2"[2]
"""


def test_each_option_of_ibnetdiscover_says_the_same_fabric(tmp_path: Path) -> None:
    """Hosts have two ports; `-p` prints the GUIDs of ports, and the others those of nodes, too."""
    net = tmp_path / "two.net"
    net.write_text(TWO_PORTS)
    with Ibsim(net) as ibsim:
        told = {
            options: ibsim.run("ibnetdiscover", *options.split(), host="H1").stdout
            for options in ("", "-f", "-g", "-s", "-m", "-p", "-l", "-H", "-S")
        }
    whole = read_ibnetdiscover(told[""])
    for options in ("-f", "-g", "-s", "-m", "-p"):
        found = parse_fabric(told[options], options)
        assert found.digest == whole.digest, options
        assert len(set(found.terminal_node_guid.tolist())) == 2, options
    for options in ("-l", "-H", "-S"):
        with pytest.raises(InputError, match="without cables"):
            parse_fabric(told[options], options)
