"""An OpenSM with the plugin on a simulated fabric."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sar_agent.fabric import Fabric
from sar_agent.install.bridge import Bridge
from sar_agent.lab.live.ibsim import Ibsim
from sar_agent.lab.live.opensm import OpenSM
from sar_agent.lab.live.process import wait_for

BRIDGE = Path(__file__).parents[2] / "opensm_bridge"
VERBOSE = 0x07  # errors, information, and the lines that routing starts and ends with


@contextmanager
def opensm(ibsim: Ibsim, fabric: Fabric, engines: str, patience: float) -> Iterator[OpenSM]:
    """OpenSM with `engines` and the plugin, its first two heavy sweeps done (the plugin asks for
    the second: only then does OpenSM send nothing but what changed)."""
    subprocess.run(["make", "-s", "-C", str(BRIDGE)], check=True)
    library = BRIDGE / "build" / "libsarbridge.so"
    host = fabric.terminal_host[0]
    with OpenSM(
        ibsim, host=host, plugin=library, routing_engine=engines, log_flags=VERBOSE
    ) as manager:
        manager.wait_up(patience)
        bridge = Bridge(manager.socket_path)

        def settled() -> bool:
            status = bridge.status()
            return (
                status.heavy_sweeps >= 2
                and status.routings >= 2
                and status.unconfirmed_switches == 0
                and manager.log().count("SUBNET UP") >= 2
            )

        wait_for(settled, patience, "OpenSM's second sweep", alive=manager.alive)
        yield manager
