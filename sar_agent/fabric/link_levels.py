"""The channels between switches by level and direction, as heat maps show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import Fabric


class SwitchLevel(NamedTuple):
    """The channels of one level and direction."""

    name: str
    channels: NDArray[np.int64]


def channel_levels(fabric: Fabric) -> list[SwitchLevel]:
    """Live channels by level and direction, from the leaf switches upwards."""
    level = levels_of(fabric).astype(np.int64)
    source, target = level[fabric.channel_source], level[fabric.channel_target]
    top = int(level.max(initial=0))
    result = []
    for low in range(top + 1):
        for a, b in ((low, low), (low, low + 1), (low + 1, low)):
            own = np.flatnonzero(fabric.channel_up & (source == a) & (target == b))
            if len(own):
                result.append(SwitchLevel(_name(a, b, top), own))
    return result


def _name(a: int, b: int, top: int) -> str:
    names = {0: "leaf switches"} | ({top: "top switches"} if top else {})
    of = names.get(a, f"switches of level {a}")
    to = names.get(b, f"switches of level {b}")
    if a == b:
        return f"between {of}"
    return f"{of} {'up' if b > a else 'down'} to {to}"
