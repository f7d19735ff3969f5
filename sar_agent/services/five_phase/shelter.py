"""The shelter: tables on which connections wait during an update, and which must stay meanwhile.

The shelter is LID offset 1: Up*/Down* routes in a virtual lane of its own
(routing/lid_offsets.py). It depends on the fabric only. Where the fabric has changed, the plan is
first installed with the shelter that is in force. The new shelter follows in a second update, while
all connections use offset 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sar_agent.errors import CheckFailed
from sar_agent.fabric.model import U8
from sar_agent.install.plan import Plan, make_plan
from sar_agent.routing.lid_offsets import BASE, SHELTER, own_rows
from sar_agent.routing.routes import NO_ROUTE, Routes


@dataclass(frozen=True)
class Moves:
    """Entries, service levels included, that differ between two tables, by LID offset."""

    base: int
    shelter: int


def moves(before: Routes, after: Routes) -> Moves:
    """What changes from `before`, which was read back on the same fabric; entries not known there
    do not count."""
    return Moves(_differ(before, after, BASE), _differ(before, after, SHELTER))


def _differ(before: Routes, after: Routes, offset: int) -> int:
    if offset >= min(len(before.egress), len(after.egress)):
        return 0 if len(before.egress) == len(after.egress) else after.egress[0].size
    at = offset, own_rows(after, offset)
    old, new = before.egress[at], after.egress[at]
    wrong = old != new
    if before.service_level is not None or after.service_level is not None:
        # The service level of a route from a switch to itself is never used.
        wrong |= (_levels(before)[at] != _levels(after)[at]) & (new != 0)
    return int((wrong & (old != NO_ROUTE)).sum())


def _levels(routes: Routes) -> U8:
    return np.zeros_like(routes.egress) if routes.service_level is None else routes.service_level


def no_shelter(routes: Routes) -> str:
    """Why connections cannot wait on offset 1 of these tables; empty where they can."""
    if len(routes.egress) < 2:
        return (
            "each port has one LID (lmc 0), so there is no offset to wait on; set lmc 1 in "
            "opensm.conf"
        )
    if routes.hop_lane is not None:
        return (
            "lanes are chosen hop by hop, so none can be reserved for LID offset 1; set "
            "agent.hosts_use_path_records"
        )
    levels = routes.service_level
    rows = own_rows(routes, SHELTER)
    if levels is None or levels[SHELTER, rows].min() <= levels[BASE, rows].max():
        return (
            "no virtual lane is reserved for LID offset 1; set agent.reserve_lane = true, and "
            f"agent.max_lanes above {routes.virtual_lanes}"
        )
    return ""


def with_shelter_of(plan: Plan, before: Routes) -> Plan | None:
    """The plan with the shelter that is in force, its transition not examined yet; None where that
    shelter does not serve this fabric, or uses another lane."""
    routes, levels, old_levels = plan.routes, plan.routes.service_level, before.service_level
    if before.egress.shape != routes.egress.shape or levels is None or old_levels is None:
        return None
    rows = own_rows(routes, SHELTER)
    old = before.egress[SHELTER, rows]
    known = old != NO_ROUTE
    if (old_levels[SHELTER, rows][known] != levels[SHELTER, rows][known]).any():
        return None
    egress = routes.egress.copy()
    egress[SHELTER, rows] = np.where(known, old, egress[SHELTER, rows])
    try:
        kept = replace(routes, egress=egress, mark=0)
        return make_plan(plan.generation, plan.fabric, plan.mix, kept, before=plan)
    except CheckFailed:
        return None
