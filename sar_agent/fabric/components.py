"""Connected components of the fabric. Switches that died are in no component.

Routes exist only within a component, so engines require a connected fabric.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, Fabric


def connected_components(fabric: Fabric) -> I32:
    """int32[S]: the component of each switch over live links; 0 is the largest; -1 for switches
    that died. Components of one size are in the order of their first switch."""
    import networkx as nx  # loading it takes a third of a second, and only this error needs it

    graph: nx.Graph[int] = nx.empty_graph(fabric.switches)
    live = fabric.channel_up
    graph.remove_nodes_from(fabric.switches_down)
    graph.add_edges_from(
        zip(fabric.channel_source[live].tolist(), fabric.channel_target[live].tolist(), strict=True)
    )
    components = sorted(nx.connected_components(graph), key=lambda c: (-len(c), min(c)))
    component = np.full(fabric.switches, -1, np.int32)
    for index, switches in enumerate(components):
        component[list(switches)] = index
    return component


def is_connected(fabric: Fabric) -> bool:
    """Whether live links lead from the first live switch to all others. The agent asks this at
    every start, so it takes a few numpy steps per level instead of loading networkx."""
    source, target = (
        fabric.channel_source[fabric.channel_up],
        fabric.channel_target[fabric.channel_up],
    )
    reached = ~fabric.switch_up
    reached[np.flatnonzero(fabric.switch_up)[:1]] = True
    count = 0
    while count != (count := int(reached.sum())):
        reached[target[reached[source]]] = True
    return bool(reached.all())


def _are_planes(fabric: Fabric, component: I32) -> bool:
    """Whether every adapter with a live port has one in each component."""
    live = fabric.is_host_port
    node = fabric.terminal_node_guid[live]
    pairs = np.unique(np.stack([node, component[fabric.terminal_switch[live]]]), axis=1)
    _, pieces = np.unique(pairs[0], return_counts=True)
    return bool(len(pieces) and (pieces == component.max() + 1).all())


def require_connected(fabric: Fabric) -> None:
    """Raise `InputError`, naming a switch of each piece, where there is more than one."""
    if is_connected(fabric):
        return
    component = connected_components(fabric)
    pieces, first, sizes = np.unique(component, return_index=True, return_counts=True)
    first, sizes = first[pieces >= 0], sizes[pieces >= 0]
    if len(first) == 1:
        return
    if _are_planes(fabric, component):
        raise InputError(
            f"the switches are in {len(first)} planes that meet only in hosts' adapters, as in "
            "planar XDR, which is not supported",
            file=fabric.name,
            remedy="give the dump of one plane at a time",
        )
    names = [
        f'"{fabric.switch_name[switch]}" ({size} switch{"es" * (size > 1)})'
        for switch, size in zip(first[:5].tolist(), sizes[:5].tolist(), strict=True)
    ]
    raise InputError(
        f"the fabric is in {len(first)} pieces, with no live link between "
        + " and ".join(names)
        + (" and others" if len(first) > 5 else ""),
        file=fabric.name,
        remedy="repair the cabling, or give one piece at a time",
    )
