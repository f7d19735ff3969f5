"""How two sets of tables differ: what an install rewrites, and whether it arrived."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.align import align
from sar_agent.fabric.lids import assign_lids
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.routing.lid_offsets import own_rows
from sar_agent.routing.routes import NO_ROUTE, Routes

BLOCK = 64
"""Entries that one management datagram carries: OpenSM sends what changed in such blocks."""


class TableChanges(NamedTuple):
    """What differs in the tables of all switches, at all LID offsets."""

    entries: int
    blocks: int
    """Blocks of linear forwarding tables, each a datagram."""


def table_changes(fabric: Fabric, before: Routes | None, after: Routes) -> TableChanges:
    """What differs between tables on the indices of `fabric`; those of LID offsets that only
    `after` has are all new, as everything is where there were none (None)."""
    switches, terminals = assign_lids(fabric, fabric.lmc)
    entries = blocks = 0
    for offset, new in enumerate(after.egress):
        differs = np.ones(new.shape, np.bool_)
        if before and offset < len(before.egress):
            differs = before.egress[offset] != new
        differs = differs[own_rows(after, offset)]
        entries += int(np.count_nonzero(differs))
        rows = np.flatnonzero(differs.any(axis=1))
        block = np.concatenate([terminals + offset, switches])[rows] // BLOCK
        order = np.argsort(block, kind="stable")
        starts = np.flatnonzero(np.diff(block[order], prepend=-1))
        if len(rows):
            touched = np.logical_or.reduceat(differs[rows[order]], starts, axis=0)
            blocks += int(np.count_nonzero(touched))
    return TableChanges(entries, blocks)


def differences(wanted: RoutesFile, found: RoutesFile) -> int:
    """The number of entries that differ, lanes hop by hop included, at the switches and
    destinations that both know. LID offsets that the plan does not have repeat its first."""
    at = align(wanted.nodes, found.nodes)
    count = 0
    for offset, table in enumerate(found.forwarding):
        used = offset if offset < len(wanted.forwarding) else 0
        want, have = at.shared(wanted.forwarding[used], table)
        # A checked plan has no route only to ports whose link is down; one that came up since
        # is routed by the plugin.
        wrong = have != want
        if wrong.any():
            wrong &= want != NO_ROUTE
        if wanted.service_levels is not None:
            if found.service_levels is None:
                return int(wanted.forwarding.size)
            levels, theirs = at.shared(wanted.service_levels[used], found.service_levels[offset])
            # Nobody asks for the level of a way from a switch to itself.
            wrong |= (levels != theirs) & (want != 0)
        count += int(np.count_nonzero(wrong))
    if wanted.hop_lanes is not None:
        if found.hop_lanes is None:
            return int(wanted.forwarding.size)
        wide = min(wanted.hop_lanes.shape[1], found.hop_lanes.shape[1])
        lanes = (
            wanted.hop_lanes[at.ours_s, :wide, :wide] != found.hop_lanes[at.theirs_s, :wide, :wide]
        )
        count += int(lanes.sum())
    return count
