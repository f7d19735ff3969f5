"""The two orders of forwarding tables: a row is a destination in `Routes`, a switch in files."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.align import Alignment
from sar_agent.fabric.model import U8


def by_destination(tables: U8, fabric: Fabric, at: Alignment, missing: int) -> U8:
    """uint8[O, D, S] on the indices of `fabric` (`ours` in `at`), from uint8[O, S, D]; `missing`
    where the tables do not have the destination or the switch."""
    d, s = np.full(fabric.destinations, -1), np.full(fabric.switches, -1)
    d[at.ours_d], s[at.ours_s] = at.theirs_d, at.theirs_s
    tables = np.stack([table.take(s, 0).take(d, 1) for table in tables])  # faster than both at once
    made = np.ascontiguousarray(tables.swapaxes(1, 2))
    made[:, d < 0] = missing
    made[:, :, s < 0] = missing
    return made
