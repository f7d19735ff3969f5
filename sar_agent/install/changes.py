"""How much of the fabric's tables an install rewrites."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.lids import assign_lids
from sar_agent.routing.lid_offsets import own_rows
from sar_agent.routing.routes import Routes

BLOCK = 64
"""Entries that one management datagram carries: OpenSM sends what changed in such blocks."""


class TableChanges(NamedTuple):
    """Of all switches and LID offsets."""

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
        some = np.flatnonzero(differs.any(axis=1))
        block = np.concatenate([terminals + offset, switches])[some] // BLOCK
        order = np.argsort(block, kind="stable")
        starts = np.flatnonzero(np.diff(block[order], prepend=-1))
        if len(some):
            touched = np.logical_or.reduceat(differs[some[order]], starts, axis=0)
            blocks += int(np.count_nonzero(touched))
    return TableChanges(entries, blocks)
