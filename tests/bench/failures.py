"""Failures of a link, a spine, a switch below the spines, and a leaf switch, drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric


def failures_of(fabric: Fabric) -> dict[str, Callable[[], Fabric]]:
    """Kind of failure → a function that returns the fabric after it."""
    random = np.random.default_rng(1)
    level = _levels(fabric)

    def without(wanted: int) -> Fabric:
        return fabric.with_switches_down([int(random.choice(np.flatnonzero(level == wanted)))])

    return {
        "a link": lambda: fabric.with_links_down([int(random.integers(fabric.channels))]),
        "a spine": lambda: without(2),
        "a switch below the spines": lambda: without(1),
        "a leaf switch": lambda: without(0),
    }


def _levels(fabric: Fabric) -> NDArray[np.int64]:
    """int64[S] on a three-level tree: 0 for leaf switches."""
    leaf = fabric.terminals_at > 0
    level = np.where(leaf, 0, 2)
    level[fabric.channel_target[leaf[fabric.channel_source]]] = 1
    return level
