"""Assigns LIDs to nodes: those of the source where it has them, else new ones."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.model import I32, Fabric
from sar_agent.util.plural import plural


@lru_cache(maxsize=4)
def assign_lids(fabric: Fabric, lmc: int = 0) -> tuple[I32, I32]:
    """Base LIDs: (int32[S] of switches, int32[T] of terminals), each 1 … 0xBFFF.

    A terminal gets 2**lmc LIDs from a base that is a multiple of that; a switch gets one. LIDs of
    the source are kept where they are in range, aligned, and not taken by a node before it in the
    file. The other nodes, often all, get the lowest free LIDs in the order of the file (a switch
    before an HCA at the same position, an HCA's ports by number).

    The result is kept, so it cannot be written to. Raises `InputError` for an `lmc` outside 0 … 7,
    and where the LIDs do not suffice.
    """
    if not 0 <= lmc <= 7:
        raise InputError(f"lmc {lmc} is outside 0 … 7")
    size = 1 << lmc
    known = np.concatenate([fabric.switch_lid, fabric.terminal_lid])
    need = np.repeat([1, size], [fabric.switches, fabric.terminals])
    position = np.concatenate([fabric.switch_position, fabric.terminal_position])
    number = np.concatenate([np.zeros(fabric.switches, np.int32), fabric.terminal_port_number])
    order = np.lexsort([number, position]).tolist()
    taken = np.zeros(MAX_LID + 1 + size, np.bool_)
    taken[0] = taken[MAX_LID + 1 :] = True
    lids = np.zeros(len(known), np.int32)
    for node in order:
        lid, count = int(known[node]), int(need[node])
        if 0 < lid <= MAX_LID and lid % count == 0 and not taken[lid : lid + count].any():
            lids[node] = lid
            taken[lid : lid + count] = True
    lowest = {1: 1, size: size}  # by number of LIDs: no free block below
    for node in order:
        if lids[node]:
            continue
        count = int(need[node])
        lid = lowest[count]
        while lid <= MAX_LID and taken[lid : lid + count].any():
            lid += count
        if lid > MAX_LID:
            raise InputError(
                f"{plural(len(known), 'node')} with {size} LIDs a port do not fit into {MAX_LID} "
                "LIDs",
                file=fabric.name,
                remedy="use a smaller lmc",
            )
        lids[node] = lid
        taken[lid : lid + count] = True
        lowest[count] = lid + count
    lids.flags.writeable = False
    return lids[: fabric.switches], lids[fabric.switches :]
