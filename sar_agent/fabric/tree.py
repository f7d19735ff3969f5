"""Is the fabric a fat tree? Levels above the hosts, told from the cabling alone.

Every cable of a fat tree joins two levels that follow each other. Real ones have parallel cables,
leaves of unequal size, broken cables, and now and then a management node on a spine: so the leaf
switches are first taken to be all that have hosts, then those with more and more of them.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric.levels import levels_above
from sar_agent.fabric.model import U8, Fabric


def tree_levels(fabric: Fabric) -> U8:
    """uint8[S]: 0 for leaf switches, 1 for those above them, …

    Raises `Unserved`, naming a cable, where no choice of leaf switches makes the fabric a tree.
    """
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source[live], fabric.channel_target[live]
    wrong = ""
    for least in np.unique(fabric.terminals_at[fabric.leaves]):
        level = levels_above(fabric, np.flatnonzero(fabric.terminals_at >= least))
        step = np.abs(level[source].astype(np.int64) - level[target])
        if (step == 1).all():
            return level
        wrong = wrong or (
            f"the cable {fabric.channel_name(int(live[step != 1][0]))} joins two switches "
            f"{_hops(int(level[source[step != 1][0]]))} from the hosts"
        )
    raise Unserved(
        f"{fabric.name} is no fat tree: {wrong or 'it has no host'}; updn, dfsssp or sar-plus serve"
    )


def _hops(level: int) -> str:
    return f"that are both {level} hop{'s' * (level != 1)}" if level else "that both have hosts, 0"
