"""Converts `Routes`, on a fabric's indices, to the arrays of a routes file, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.align import align
from sar_agent.fabric.model import U8
from sar_agent.formats.guid_tables import by_destination
from sar_agent.formats.routes_file import DROPPED, NO_SWITCH, RoutesFile
from sar_agent.routing.routes import NO_ROUTE, Routes

EVERY_LEVEL = 0xFFFF


def routes_to_file(
    fabric: Fabric,
    routes: Routes,
    generation: int,
    made_at: int = 0,
    *,
    senders: NDArray[np.bool_] | None = None,
    levels: int = EVERY_LEVEL,
    numbers: NDArray[np.uint32] | None = None,
    loads: NDArray[np.uint32] | None = None,
) -> RoutesFile:
    """The routes file of destination-major tables; its switch-major rows are what the plugin copies
    into LFTs.

    `senders` is bool[S], the switches where the proof covers hosts that the fabric does not know;
    None: the switches that have a host. `levels` is the bit set of service levels that live jobs
    may still use; with lanes by path, levels that neither they nor the plan use are dropped.
    `numbers` (uint32[L, S, P + 1]) and `loads` (uint32[S, P + 1]) of channels come together.
    """
    if senders is None:
        senders = np.bincount(fabric.terminal_switch, minlength=fabric.switches) > 0
    lanes = routes.virtual_lanes
    hops = routes.hop_lane if lanes > 1 else None
    by_path = lanes > 1 and hops is None
    table = routes.service_level if by_path else None
    if by_path and table is None:
        table = np.zeros_like(routes.egress)
    offsets = len(routes.egress)
    return RoutesFile(
        generation=generation,
        engine=routes.engine,
        fabric_digest=routes.fabric_digest,
        made_at=made_at,
        lanes=lanes,
        switch_guids=fabric.switch_guid,
        terminal_guids=fabric.terminal_guid,
        terminal_leaf=fabric.terminal_switch.astype(np.uint32),
        switch_ports=fabric.switch_ports.astype(np.uint8),
        forwarding=routes.egress.swapaxes(1, 2),
        far_ends=_far_ends(fabric),
        senders=senders.astype(np.uint8),
        service_levels=None if table is None else table.swapaxes(1, 2),
        sl_to_vl=None if table is None else _sl_to_vl(lanes, levels, table),
        fallback_sl=np.zeros(offsets, np.uint8) if by_path else None,
        hop_lanes=hops,
        numbers=numbers,
        loads=loads,
    )


def _sl_to_vl(lanes: int, levels: int, table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8[16]: the lane of each service level; 15 (the level is dropped) for levels that are
    neither in the bit set `levels` nor in `table`. Level 0 always has a lane: fallback paths use
    it."""
    used = np.union1d(table, 0)
    kept = (levels >> np.arange(16) & 1).astype(bool)
    kept[used] = True
    return np.where(kept, np.arange(16) % lanes, DROPPED).astype(np.uint8)


def _far_ends(fabric: Fabric) -> NDArray[np.uint32]:
    """uint32[S, P + 1]: switch · 256 + port at the other end of each live cable."""
    ends = np.full((fabric.switches, 1 + int(fabric.switch_ports.max())), NO_SWITCH, np.uint32)
    up = np.flatnonzero(fabric.channel_up)
    far = fabric.channel_target[up] * 256 + fabric.channel_port[fabric.channel_reverse[up]]
    ends[fabric.channel_source[up], fabric.channel_port[up]] = far
    return ends


def file_to_routes(fabric: Fabric, file: RoutesFile, egress: U8 | None = None) -> Routes:
    """A routes file (of a plan, or a dump of the routes in force) on the indices of `fabric`.
    `egress`: its entries on these indices, where they are known.

    Destinations and switches that the file does not have get no route (255); those that only the
    file has are left out.
    """
    at = align(fabric.nodes, file.nodes)
    if egress is None:
        egress = by_destination(file.forwarding, fabric, at, NO_ROUTE)
    levels = None
    if file.service_levels is not None:
        levels = by_destination(file.service_levels, fabric, at, 0)
    ours_s, theirs_s = at.ours_s, at.theirs_s
    senders = np.zeros(fabric.switches, np.bool_)
    senders[ours_s] = file.senders[theirs_s].astype(np.bool_)
    hops = None
    if file.hop_lanes is not None:
        wide = int(fabric.switch_ports.max(initial=0)) + 1
        hops, both = np.zeros((fabric.switches, wide, wide), np.uint8), file.hop_lanes[theirs_s]
        both = both[:, :wide, :wide]
        hops[ours_s, : both.shape[1], : both.shape[1]] = both
    return Routes(
        engine=file.engine,
        fabric_digest=file.fabric_digest,
        egress=egress,
        service_level=levels,
        virtual_lanes=file.lanes,
        hop_lane=hops,
        senders=senders,
    )


def file_to_had(fabric: Fabric, file: RoutesFile) -> U8 | None:
    """uint8[O, D, S]: entries that switches may have instead of those of `file_to_routes`, 254
    where they are not known; None where all switches have confirmed."""
    if file.had is None:
        return None
    return by_destination(file.had, fabric, align(fabric.nodes, file.nodes), NO_ROUTE)


def file_to_numbers(fabric: Fabric, file: RoutesFile) -> NDArray[np.uint32] | None:
    """uint32[L, S, P]: the file's channel numbers on the indices of `fabric`, 0 for ports of
    switches that the file does not have; None where it has no numbers."""
    if file.numbers is None:
        return None
    at = align(fabric.nodes, file.nodes)
    wide = int(fabric.switch_ports.max(initial=0)) + 1
    numbers = np.zeros((file.lanes, fabric.switches, wide), np.uint32)
    theirs = file.numbers[:, at.theirs_s, :wide]
    numbers[:, at.ours_s, : theirs.shape[2]] = theirs
    return numbers
