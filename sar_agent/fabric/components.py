"""Connected components of the fabric. Switches that died are in no component.

Routes exist only within a component, so engines require a connected fabric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, I64, U8, Fabric


def components_of(count: int, source: NDArray[np.integer], target: NDArray[np.integer]) -> I64:
    """int64[count]: the lowest node of each node's component. The edges are in both directions.

    >>> components_of(4, np.array([1, 3]), np.array([3, 1])).tolist()
    [0, 1, 2, 1]
    """
    lowest = np.arange(count)
    while True:
        before = lowest.copy()
        np.minimum.at(lowest, target, before[source])
        lowest = lowest[lowest]  # so long paths take few turns
        if np.array_equal(before, lowest):
            return lowest


def components_below(fabric: Fabric, level: U8, highest: int) -> I64:
    """int64[S]: the lowest switch of each component over live links between switches up to level
    `highest`; all other switches are components of their own."""
    low = level <= highest
    source, target = fabric.channel_source, fabric.channel_target
    kept = fabric.channel_up & low[source] & low[target]
    return components_of(fabric.switches, source[kept], target[kept])


def connected_components(fabric: Fabric) -> I32:
    """int32[S]: the component of each switch over live links; 0 is the largest; -1 for switches
    that died. Components of one size are in the order of their first switch."""
    live, up = fabric.channel_up, fabric.switch_up
    lowest = components_of(
        fabric.switches, fabric.channel_source[live], fabric.channel_target[live]
    )
    _, index, size = np.unique(lowest[up], return_inverse=True, return_counts=True)
    component = np.full(fabric.switches, -1, np.int32)
    component[up] = np.argsort(np.argsort(-size, kind="stable"))[index]
    return component


def is_connected(fabric: Fabric) -> bool:
    """Whether live links lead from the first live switch to all others."""
    return not (connected_components(fabric) > 0).any()


def _are_planes(fabric: Fabric, component: I32) -> bool:
    """Whether every adapter with a live port has one in each component."""
    live = fabric.is_host_port
    node = fabric.terminal_node_guid[live]
    pairs = np.unique(np.stack([node, component[fabric.terminal_switch[live]]]), axis=1)
    _, pieces = np.unique(pairs[0], return_counts=True)
    return bool(len(pieces) and (pieces == component.max() + 1).all())


def _shared_lid(fabric: Fabric, component: I32) -> int:
    """A LID that ports of two components have, 0 without one: within one subnet LIDs are unique."""
    live = fabric.terminal_up
    lid = np.concatenate([fabric.switch_lid, fabric.terminal_lid[live]])
    place = np.concatenate([component, component[fabric.terminal_switch[live]]])
    pairs = np.unique(np.stack([lid, place])[:, (lid > 0) & (place >= 0)], axis=1)
    shared = pairs[0][1:][pairs[0][1:] == pairs[0][:-1]]
    return int(shared[0]) if len(shared) else 0


def require_connected(fabric: Fabric) -> None:
    """Raise `InputError`, naming a switch of each piece, where there is more than one."""
    component = connected_components(fabric)
    pieces, first, sizes = np.unique(component, return_index=True, return_counts=True)
    first, sizes = first[pieces >= 0], sizes[pieces >= 0]
    if len(first) <= 1:
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
    lid = _shared_lid(fabric, component)
    raise InputError(
        f"the fabric is in {len(first)} pieces, with no live link between "
        + " and ".join(names)
        + (" and others" if len(first) > 5 else "")
        + (f"; LID {lid} is in several of them, so these are several subnets" if lid else ""),
        file=fabric.name,
        remedy="give the dump of one subnet at a time"
        if lid
        else "repair the cabling, or give one piece at a time",
    )
