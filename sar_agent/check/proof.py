"""The proof that a check leaves behind: the tables that were examined, and their dependencies.

A `ProvedTables` holds read-only copies of its own, so that what was proved cannot change. Every
proof is of all trees: on a busy machine, plans take 9 ms of CPU time longer at 1,728 hosts, and 0.2
s at 11,664, than with proofs of changed trees only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sar_agent.check.counted_trees import Counts, count_trees, empty_counts
from sar_agent.check.hop_lanes import HopLanes, count_hops, hops_of
from sar_agent.check.wiring import Wiring, wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.routes import Routes

A = TypeVar("A", bound=np.ndarray[Any, Any])


@dataclass(frozen=True, eq=False)
class ProvedTables:
    """Tables whose trees all reach their destinations. Only this room creates them."""

    wiring: Wiring
    egress: U8
    """uint8[O, D, S], as `Routes.egress`; a read-only copy."""
    level: U8
    """uint8[O, D, S], service levels, or uint8[O, D, 0] in one lane; a read-only copy."""
    counts: Counts
    """The number of trees that have each dependency; with `hops`, only 0 or 1."""
    hops: HopLanes | None = None
    """Lanes chosen hop by hop; None where the service level determines the lane."""
    everyone: bool = False
    """Whether there is no credit loop even with traffic to the switches' own LIDs."""


def prove(fabric: Fabric, routes: Routes) -> ProvedTables | None:
    """The proof of all trees; None where some tree does not reach."""
    wiring = wiring_of(fabric, routes.virtual_lanes)
    egress, level = _own(routes)
    if routes.hop_lane is not None:
        hops = hops_of(fabric, routes, wiring)
        used = count_hops(wiring, hops, egress)
        return (
            None if used is None else ProvedTables(wiring, egress, level, _frozen(used), hops=hops)
        )
    counts = empty_counts(wiring, egress.shape[0] * egress.shape[1])
    for rows, levels in zip(egress, level, strict=True):
        if not count_trees(wiring, rows, levels, counts):
            return None
    return ProvedTables(wiring, egress, level, _frozen(counts))


def _own(routes: Routes) -> tuple[U8, U8]:
    """Read-only copies of the tables and service levels."""
    levels = routes.service_level
    if levels is None or routes.virtual_lanes == 1:
        levels = np.empty((*routes.egress.shape[:2], 0), np.uint8)
    return _frozen(routes.egress.copy()), _frozen(levels.copy())


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array
