"""OpenSM with the plugin on a simulated fabric."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import decode, encode, write_routes_file
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.routing import Options, load_engine
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import TIMEOUTS, Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.worlds.certificates import numbered
from tests.worlds.live.built import built

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


@contextmanager
def opensm_with_plan(fabric: Fabric, patience: float) -> Iterator[tuple[Ibsim, OpenSM]]:
    """OpenSM that begins with a routes file of sar-plus for `mix:1`, as at a site, after its first
    two heavy sweeps. Without the file its next engine would route first, for minutes at 11,664
    hosts; with `qos TRUE` it would send a table for each pair of ports of each switch."""
    os.environ.setdefault(TIMEOUTS, str(built("opensm_bridge", "libumad_timeouts.so")))
    routes = load_engine("sar-plus").route(fabric, synthetic_mix(fabric, 1), Options())
    plan = numbered(decode(encode(routes_to_file(fabric, routes, 1))))
    assert plan is not None, "a tree has an order"
    with ibsim_for(fabric) as ibsim:
        manager = started(ibsim, fabric, "sar,updn", qos="FALSE").prepare()
        write_routes_file(manager.routes_path, plan)
        with manager:
            wait_sweeps(manager, 2, patience)
            yield ibsim, manager


def cpu_of(pid: int) -> float:
    """CPU seconds of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
