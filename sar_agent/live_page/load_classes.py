"""The classes of predicted loads and the levels of links, as heat maps show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of

EDGES = (0.5, 1.0, 1.5, 2.0, 3.0)
"""Upper bounds of the load classes 1 … 5. Class 0 is an unused link, class 6 is above all
bounds."""
NAMES = ("unused", "up to ½ full", "½ to full", "to 1½ times full", "to 2 times", "to 3 times",
         "more than 3 times")  # fmt: skip
HAIR = 1e-6


class SwitchLevel(NamedTuple):
    """The channels of one level and direction."""

    name: str
    channels: NDArray[np.int64]


def load_classes(load: NDArray[np.float64]) -> NDArray[np.int64]:
    """int64[C]: the load class of each channel, 0 … 6."""
    result = 1 + np.searchsorted(np.array(EDGES) + HAIR, load)
    return np.where(load > 0, result, 0).astype(np.int64)


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
