"""OpenSM with the plugin on a simulated fabric."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for

BRIDGE = Path(__file__).parents[2] / "opensm_bridge"
LOG = 0x03
"""Log errors and information. The module that starts the engines also logs the begin of routing.
Further messages of the engines would be part of their time (lash logs a line for each route)."""
MODULES = "osm_ucast_mgr.c 0x07\n"


@contextmanager
def opensm(
    ibsim: Ibsim, fabric: Fabric, engines: str, patience: float, **options: str
) -> Iterator[OpenSM]:
    """OpenSM with `engines` and the plugin, after its first two heavy sweeps. The plugin requests
    the second; only from then on OpenSM sends only changes."""
    with started(ibsim, fabric, engines, **options) as manager:
        wait_sweeps(manager, 2, patience)
        yield manager


def started(ibsim: Ibsim, fabric: Fabric, engines: str, **options: str) -> OpenSM:
    """OpenSM with `engines` and the plugin, as a context manager that does not wait for a sweep."""
    subprocess.run(["make", "-s", "-C", str(BRIDGE)], check=True)
    modules = ibsim.scratch / "modules.conf"
    modules.write_text(MODULES)
    return OpenSM(
        ibsim,
        host=net_ids(fabric)[1][int(fabric.is_host_port.argmax())],
        plugin=BRIDGE / "build" / "libsarbridge.so",
        routing_engine=engines,
        options={"per_module_logging_file": str(modules), **options},
        log_flags=LOG,
    )


def wait_sweeps(manager: OpenSM, sweeps: int, patience: float) -> None:
    """Wait until `sweeps` heavy sweeps are done and every switch has confirmed its tables."""
    manager.wait_up(patience)
    bridge = PluginClient(manager.socket_path)

    def finished() -> bool:
        status = bridge.status()
        return (
            min(status.heavy_sweeps, status.routings, manager.log().count("SUBNET UP")) >= sweeps
            and status.unconfirmed_switches == 0
        )

    wait_for(finished, patience, f"OpenSM's sweep {sweeps}", alive=manager.alive)
