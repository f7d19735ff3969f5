"""In which order engines that count what they have given out take destinations."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import U32, Fabric


def leaf_by_leaf(fabric: Fabric) -> U32:
    """uint32[D]: terminals in the order of their switches' GUIDs and ports, then the switches' own
    LIDs: neighbours take turns, and the order in a file changes no route.

    >>> from sar_agent.fabric.spec import load_fabric
    >>> leaf_by_leaf(load_fabric("xgft:2;2,2;1,1")).tolist()
    [0, 1, 2, 3, 4, 5, 6]
    """
    guid = fabric.switch_guid[fabric.terminal_switch]
    terminals = np.lexsort((fabric.terminal_switch_port, guid))
    switches = fabric.terminals + np.argsort(fabric.switch_guid)
    return np.concatenate([terminals, switches]).astype(np.uint32)


def opensm_order(fabric: Fabric) -> U32:
    """uint32[D]: terminals in OpenSM's order (`osm_ucast_mgr.c`), then those that are down, which
    OpenSM does not see, then the switches' own LIDs. Terminals of one switch follow each other by
    port; first come the switches with most terminals, then those of lower GUID. OpenSM keeps GUIDs
    as the network sends them, with the most significant byte first, and compares them as numbers of
    this machine, that is, as if the last byte were the most significant one."""
    live = fabric.terminal_switch[fabric.terminal_up]
    most_first = -np.bincount(live, minlength=fabric.switches)
    guid = fabric.switch_guid.byteswap()
    at = fabric.terminal_switch
    down = ~fabric.terminal_up
    terminals = np.lexsort((fabric.terminal_switch_port, guid[at], most_first[at], down))
    switches = fabric.terminals + np.argsort(guid)
    return np.concatenate([terminals, switches]).astype(np.uint32)
