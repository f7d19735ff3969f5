"""Is there a shelter, and does it stay? Where connections wait, nothing may change.

The shelter is LID offset 1: Up*/Down* in a lane of its own (routing/offsets.py). It hangs on the
fabric only; so where that has changed, the plan is first installed with the shelter as it is in
force, and the new one in an update of its own while everybody is on offset 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sar_agent.errors import CheckFailed
from sar_agent.install.plan import Plan, file_to_routes, make_plan
from sar_agent.install.routes_file import NO_ROUTE, RoutesFile, shared_by
from sar_agent.routing.offsets import BASE, SHELTER
from sar_agent.routing.routes import Routes


@dataclass(frozen=True)
class Moves:
    """Entries, service levels included, that differ between two files, by LID offset."""

    base: int
    shelter: int


def moves(before: RoutesFile, after: RoutesFile) -> Moves:
    """Among what both know. Of the shelter the ways to hosts: switches have one LID, mostly."""
    return Moves(_differ(before, after, BASE), _differ(before, after, SHELTER))


def _differ(before: RoutesFile, after: RoutesFile, offset: int) -> int:
    if offset >= min(len(before.forwarding), len(after.forwarding)):
        return 0 if len(before.forwarding) == len(after.forwarding) else after.forwarding[0].size
    (old_s, new_s), (old_d, new_d) = shared_by(before, after)
    if offset == SHELTER:
        hosts = new_d < len(after.terminal_guids)
        old_d, new_d = old_d[hosts], new_d[hosts]
    old, new = np.ix_(old_s, old_d), np.ix_(new_s, new_d)
    ports = after.forwarding[offset][new]
    wrong = before.forwarding[offset][old] != ports
    levels = [
        file.forwarding[offset] * np.uint8(0)
        if file.service_levels is None
        else file.service_levels[offset]
        for file in (before, after)
    ]
    # Nobody asks for the level of a way from a switch to itself.
    wrong |= (levels[0][old] != levels[1][new]) & (ports != 0)
    return int(wrong.sum())


def no_shelter(routes: Routes) -> str:
    """Why connections cannot wait on offset 1 of these tables; empty where they can."""
    if len(routes.egress) < 2:
        return (
            "each port has one LID (lmc 0), so there is no offset to wait on; set lmc 1 in "
            "opensm.conf"
        )
    if routes.hop_lane is not None:
        return (
            "lanes are chosen hop by hop, so none can be kept for LID offset 1; set "
            'agent.lanes = "path"'
        )
    levels = routes.service_level
    if levels is None or levels[SHELTER].min() <= levels[BASE].max():
        return (
            "no virtual lane is kept for LID offset 1; set agent.reserve_lane = true, and "
            f"agent.max_lanes above {routes.virtual_lanes}"
        )
    return ""


def with_shelter_of(plan: Plan, before: RoutesFile) -> Plan | None:
    """The plan with the shelter that is in force; None where that does not serve this fabric, or
    stands in another lane."""
    fabric, routes = plan.fabric, plan.routes
    old = file_to_routes(fabric, before)
    levels, known = routes.service_level, old.service_level
    if old.egress.shape != routes.egress.shape or levels is None or known is None:
        return None
    fits = old.egress[SHELTER] != NO_ROUTE
    if (known[SHELTER][fits] != levels[SHELTER][fits]).any():
        return None
    egress = routes.egress.copy()
    egress[SHELTER] = np.where(fits, old.egress[SHELTER], routes.egress[SHELTER])
    try:
        kept = replace(routes, egress=egress)
        return make_plan(plan.generation, fabric, plan.mix, kept, before=plan)
    except CheckFailed:
        return None
