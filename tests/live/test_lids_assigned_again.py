"""OpenSM assigns the LIDs of two hosts again in the very sweep that a load waits for: the second
plugin swaps them in OpenSM's guid2lid table (opensm_bridge/tests/swap_lids.c).

The switches then still have the tables that the load was proved from. But a LID now names another
host, so each of its entries would go from one tree to another: a mixture that nobody has proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sar_agent.fabric.ibsim_net import read_ibsim_net
from sar_agent.formats.routes_file import read_generation, write_routes_file
from sar_agent.install.plan import make_plan
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import LoadAnswer, PluginClient, PluginRefused
from sar_agent.opensm.plugin_install import next_path
from sar_agent.opensm.plugin_manager import PluginManager
from sar_agent.routing import Options, load_engine
from tests.worlds.live.built import built
from tests.worlds.live.site import Site, site
from tests.worlds.live.slow_opensm import SeenTransit

pytestmark = pytest.mark.live
HOSTS = "n003", "n014"  # at different leaf switches


@contextmanager
def swapping() -> Iterator[Site]:
    """A site with generation 5 in force, whose OpenSM can be made to swap LIDs."""
    with site(beside=built("opensm_bridge", "libsarswap.so")) as here:
        here.load(here.tree.routes(5))
        try:
            yield here
        finally:
            (here.sm.folder / "gate").unlink(missing_ok=True)


def swap_during(
    here: Site, pool: ThreadPoolExecutor, bridge: PluginClient, generation: int, proved: str | None
) -> Future[LoadAnswer]:
    """A heavy sweep begins, in which OpenSM swaps the LIDs of `HOSTS`; once it has, a load is asked
    for; then the sweep goes on, so that its routing serves the load."""
    guids = here.tree.terminals()
    gate, swap = here.sm.folder / "gate", here.sm.folder / "swap"
    gate.touch()
    swap.write_text(" ".join(hex(guids[host]) for host in HOSTS))
    here.sm.sweep()
    here.wait(lambda status: not swap.exists() and status.state == "asked")
    load = pool.submit(PluginClient.load, bridge, generation, proved)
    here.wait(lambda status: status.generation_loaded == generation)
    gate.unlink()
    return load


def test_a_load_is_refused_where_lids_were_swapped_in_its_own_sweep() -> None:
    with swapping() as here, ThreadPoolExecutor(1) as pool:
        proved_from, before = here.bridge.dump().digest, [here.lid(host) for host in HOSTS]
        write_routes_file(here.sm.next_path, here.tree.routes(6, shift=1))
        load = swap_during(here, pool, here.bridge, 6, proved_from)
        with pytest.raises(PluginRefused, match="not those that the routes were proved") as refused:
            load.result()
        assert refused.value.code == "changed"
        assert [here.lid(host) for host in HOSTS] == before[::-1]
        # The two LIDs have no routes until packets by the former ones are gone.
        here.wait(lambda s: s.settled and s.generation_in_force == 5 and not s.repair_drops)
        # The plan that is in force, for the LIDs of now: no packet comes to the wrong host.
        here.assert_in_force(here.tree.routes(5))
        for host, lid in zip(HOSTS, before[::-1], strict=True):
            guid = hex(here.tree.terminals()[host])
            assert guid.removeprefix("0x") in here.tool("smpquery", "nodeinfo", str(lid))


class Swapped(PluginClient):
    """Within the first load, OpenSM swaps LIDs."""

    def __init__(self, here: Site, pool: ThreadPoolExecutor) -> None:
        super().__init__(here.bridge.socket_path)
        self.here, self.pool, self.loads = here, pool, 0

    def load(self, generation: int, proved_from: str | None) -> LoadAnswer:
        self.loads += 1
        if self.loads > 1:
            return super().load(generation, proved_from)
        return swap_during(self.here, self.pool, self, generation, proved_from).result()


def test_the_agent_proves_again_from_the_tables_by_the_new_lids(tmp_path: Path) -> None:
    with swapping() as here, ThreadPoolExecutor(1) as pool:
        net = tmp_path / "fabric.net"
        net.write_text(here.tree.net())
        fabric, mix = read_ibsim_net(net.read_text()), JobMix(())
        plan = make_plan(6, fabric, mix, load_engine("dfsssp").route(fabric, mix, Options()))
        bridge = Swapped(here, pool)
        transit = SeenTransit(PluginManager(bridge, here.sm.routes_path))
        arrived = transit.install(plan)
        assert bridge.loads == 2 and transit.seen[0].digest != transit.seen[1].digest
        assert arrived.in_force.confirmed and arrived.in_force.generation == 6
        assert read_generation(here.sm.routes_path) == 6
        assert not next_path(here.sm.routes_path).exists()
        here.assert_in_force(arrived.plan.routes_file)
