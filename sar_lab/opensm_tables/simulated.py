"""The tables that a stock OpenSM makes with one of its own engines, on a simulation of a fabric.

OpenSM and ibsim run in a folder of their own, with the LIDs of the fabric. Such an OpenSM must not
reach a real network, even where the simulator's library cannot be loaded: it may bind only to the
port GUID of another machine.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.text_files import read_text
from sar_lab.live.generated import ibsim_for
from sar_lab.live.opensm import OpenSM

ENGINES = ("minhop", "updn", "ftree")
"""Those whose tables need no lanes of their own."""
_KEPT = re.compile(
    r"^(root_guid_file|cn_guid_file|io_guid_file|max_reverse_hops|connect_roots|ids_guid_file|"
    r"guid_routing_order_file|port_profile_switch_nodes|port_prof_ignore_file|hop_weights_file|"
    r"scatter_ports|quasi_ftree_indexing)\s+(\S.*)$",
    re.MULTILINE,
)
_USED = re.compile(r"osm_ucast_mgr_process: (\S+) tables configured on all switches")
SECONDS = 3600.0
"""OpenSM's ftree takes minutes above 10,000 hosts."""


def routing_options(opensm_conf: Path) -> dict[str, str]:
    """The lines of a site's opensm.conf that its engines read. Raises `InputError` where the file
    cannot be read."""
    found = dict(_KEPT.findall(read_text(opensm_conf)))
    return {key: value.strip() for key, value in found.items() if value.strip() != "(null)"}


def simulated_routes(
    fabric: Fabric, engine: str, options: Mapping[str, str], seconds: float = SECONDS
) -> Routes:
    """OpenSM's tables on `fabric`, with lines of its configuration. Entries that lead to switches
    and that OpenSM leaves empty, which no packet of a host follows, are those of our minhop.

    Raises `Unserved` where OpenSM takes another engine instead, and `SarError` where ibsim or
    OpenSM are not installed.
    """
    host, guid = _elsewhere(fabric)
    manager: OpenSM
    with (
        ibsim_for(fabric) as ibsim,
        OpenSM(
            ibsim,
            host=host,
            routing_engine=engine,
            options={"qos": "FALSE", "guid": f"0x{guid:016x}", **options},
        ) as manager,
    ):
        manager.wait_up(seconds)
        used = _USED.findall(manager.log())
        if used[-1:] != [engine]:
            raise Unserved(
                f"OpenSM's {engine} refuses this fabric, and {used[-1] if used else 'nothing'} "
                f"takes its place; name another of {', '.join(ENGINES)}"
            )
        routes = read_lfts_dump(manager.dump_dir / "opensm-lfts.dump", fabric)
    minhop = load_engine("minhop").route(fabric, JobMix(()), Options()).egress
    egress = routes.egress.copy()
    to_switches = egress[:, fabric.terminals :]
    np.copyto(to_switches, minhop[:, fabric.terminals :], where=to_switches == NO_ROUTE)
    return replace(routes, engine=engine, egress=egress)


def _elsewhere(fabric: Fabric) -> tuple[str, int]:
    """The node id and port GUID of a host that is not this machine. Raises `InputError`."""
    here = socket.gethostname().partition(".")[0].lower()
    for terminal in np.flatnonzero(fabric.is_host_port).tolist():
        if fabric.terminal_host[terminal].partition(".")[0].lower() != here:
            return net_ids(fabric)[1][terminal], int(fabric.terminal_guid[terminal])
    raise InputError("no host of the fabric is another machine than this one")
