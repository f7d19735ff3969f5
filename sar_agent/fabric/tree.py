"""Recognises fat trees: determines the switches' levels above the hosts from the cabling alone.

Every cable of a fat tree joins two consecutive levels. Real fat trees have parallel cables, leaves
of unequal size, broken cables, and now and then a management node on a spine. So first all switches
with hosts are taken for leaf switches, then only those with more and more hosts.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric.levels import levels_above
from sar_agent.fabric.model import U8, Fabric


def tree_levels(fabric: Fabric) -> U8:
    """uint8[S]: 0 for leaf switches, 1 for those above them, …

    Raises `Unserved`, naming a cable, where no choice of leaf switches gives consecutive levels.
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
        f"{fabric.name} is not a fat tree: {wrong or 'it has no host'}; "
        "take updn, dfsssp or sar-plus"
    )


def _hops(level: int) -> str:
    return f"that are both {level} hop{'s' * (level != 1)}" if level else "that both have hosts, 0"
