"""Virtual lanes for any tables: no credit loop in any of them, as few lanes as it finds.

It tries, in this order, until something fits the budget: one lane for all paths; lanes chosen hop
by hop, which are transparent to hosts (`hop.py`), for the engine's tables or for regular ones; path
by path into layers (`lane_assignment.py`); the same again in another order; on a torus,
dimension-ordered tables instead of the engine's; tables grown while their lanes are chosen
(`joint_assignment.py`); with best effort, Up*/Down* paths for the remainder (`updown_lane.py`).
But for the first two, a packet's lane follows from its service level, which depends on (source
switch, destination) and which hosts must take from path records (docs/lanes.md).

Layers of paths are LASH's and DFSSSP's method (Skeie et al., IPDPS 2002; Domke et al., IPDPS 2011).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sar_agent.errors import InputError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.lanes.dimensions import dimension_ordered
from sar_agent.routing.lanes.dragonfly_groups import (
    dragonfly_groups_of,
    lanes_after_global,
    local_global_local,
)
from sar_agent.routing.lanes.even_lanes import even_out, shared_by
from sar_agent.routing.lanes.grid import grid_of
from sar_agent.routing.lanes.hop import hop_lanes
from sar_agent.routing.lanes.joint_assignment import joint_assignment
from sar_agent.routing.lanes.lane_assignment import MOST_LANES, LaneAssignment, LaneProblem
from sar_agent.routing.lanes.place_paths import UNPLACED
from sar_agent.routing.lanes.updown_lane import use_updown_paths
from sar_agent.routing.routes import Routes
from sar_agent.routing.weighted_trees import sources_of

INFINIBAND_LANES = 15
"""Data lanes of InfiniBand; the sixteenth lane is for management."""
REMARKS = {
    "dimensions": "dimension-ordered: the engine's own routes need {needed} virtual lanes",
    "joint": "chosen for few lanes: the engine's own routes need {needed} virtual lanes",
}
WORDS = {"local-global-local": "local, global, local", "dimensions": "dimension-ordered"}


def assign_lanes(
    fabric: Fabric, routes: Routes, options: Options, mix: JobMix | None = None
) -> Routes:
    """`routes` with `service_level` and `virtual_lanes` such that no lane has a credit loop between
    hosts. Where no lanes suffice for the tables, other tables replace them.

    `mix`: the traffic that is balanced over lanes; without it all pairs count alike. Routes that
    need one lane are returned as they are. Where tables were replaced the engine's name gets an
    ending (`+dimensions`, `+joint`, `+updn`) and `remarks` explain why. Raises `Unserved` where
    lanes run out, `InputError` for bad budgets.
    """
    budget = lane_budget(fabric, options)
    problem = LaneProblem(fabric, len(routes.egress))
    plain = LaneAssignment(problem, routes.egress.reshape(-1, fabric.switches))
    if plain.single_lane():
        return routes
    laid = _hop_by_hop(fabric, routes, budget) if options.lanes == "hop" else None
    if laid is not None:
        return laid
    plain.assign()
    assignment, remarks = _first_that_fits(plain, budget, options.best_effort)
    _place_others(assignment)
    _balance(assignment, budget, options.spread_lanes, mix)
    return _routes_of(routes, assignment, remarks)


def lane_budget(fabric: Fabric, options: Options) -> int:
    """How many lanes the routes of LID offset 0 may use. Raises `InputError`."""
    if not 1 <= options.max_lanes <= INFINIBAND_LANES:
        raise InputError(
            f"{options.max_lanes} virtual lanes",
            remedy=f"give 1 to {INFINIBAND_LANES}, as many as the switches have",
        )
    kept = int(options.reserve_lane and fabric.lmc > 0)
    return max(1, options.max_lanes - kept)


def _first_that_fits(
    plain: LaneAssignment, budget: int, best_effort: bool
) -> tuple[LaneAssignment, tuple[str, ...]]:
    """The first attempt that fits. Raises `Unserved`."""
    least = plain
    needed = ""
    for assignment in _attempts(plain, budget):
        if assignment is plain:
            needed = _count(assignment)
        if assignment.complete and len(assignment.lanes) <= budget:
            if not assignment.method:
                return assignment, ()
            remark = REMARKS[assignment.method].format(needed=needed)
            return assignment, (f"routes are {remark}",)
        least = min(least, assignment, key=lambda attempt: len(attempt.lanes))
    if not best_effort:
        raise Unserved(
            f"{_count(least)} virtual lanes are needed to avoid credit loops, and there are "
            f"{budget}; allow more (max_lanes), or Up*/Down* paths for the remainder (best effort)"
        )
    return least, _reduce_lanes(least, budget)


def _hop_by_hop(fabric: Fabric, routes: Routes, budget: int) -> Routes | None:
    """Lanes that are transparent to hosts; None where no such lanes were found. First for the
    engine's tables, then for the regular tables of a Dragonfly or a torus."""
    if laid := hop_lanes(fabric, routes, budget):
        return laid
    copies = len(routes.egress), 1, 1
    if budget > 1 and (dragonfly := dragonfly_groups_of(fabric)):
        how, tables = "local-global-local", local_global_local(fabric, dragonfly)
        lane = lanes_after_global(fabric, dragonfly)
        laid = replace(routes, service_level=None, virtual_lanes=2, hop_lane=lane, mark=0)
        laid = replace(laid, egress=np.tile(tables, copies))
    elif grid := grid_of(fabric):
        how, tables = "dimensions", dimension_ordered(fabric, grid)
        laid = hop_lanes(fabric, replace(routes, egress=np.tile(tables, copies)), budget)
    else:  # some entries become other shortest paths
        return hop_lanes(fabric, routes, budget, other_paths=True)
    if laid is None:
        return None
    remark = f"routes are {WORDS[how]}: the engine's own routes allow no lanes hop by hop"
    engine, remarks = f"{routes.engine}+{how}", (*routes.remarks, remark)
    return replace(laid, engine=engine, remarks=remarks, regular=True)


def _count(assignment: LaneAssignment) -> str:
    return str(len(assignment.lanes)) if assignment.complete else f"more than {MOST_LANES}"


def _attempts(plain: LaneAssignment, budget: int) -> Iterator[LaneAssignment]:
    if plain.complete and (len(plain.lanes) > budget or plain.last_nearly_empty):
        plain.reassign()
    yield plain
    problem = plain.problem
    if grid := grid_of(problem.fabric):
        ordered = dimension_ordered(problem.fabric, grid)
        assignment = LaneAssignment(problem, np.tile(ordered, (problem.offsets, 1)), "dimensions")
        assignment.assign()
        assignment.reassign()
        yield assignment
    yield joint_assignment(problem, plain.trees)


def _reduce_lanes(assignment: LaneAssignment, budget: int) -> tuple[str, ...]:
    """Gives the paths in lanes past the budget Up*/Down* paths."""
    wanted = _count(assignment)
    assignment.trees, assignment.method = assignment.trees.copy(), "updn"
    moved = use_updown_paths(assignment, budget)
    hosts = (
        np.tile(assignment.problem.is_host, assignment.problem.offsets).sum()
        * assignment.problem.hosts.sum()
    )
    return (
        f"best effort: {moved} of {hosts} paths are Up*/Down* paths in the last virtual lane, "
        f"because without them {wanted} lanes would be needed",
    )


def _place_others(assignment: LaneAssignment) -> None:
    """Assigns paths from and to switches and aggregation units to lanes that exist already. Paths
    to leaf switches are left to `follow_hosts`."""
    problem = assignment.problem
    units, hosts = problem.sources(problem.units), problem.sources(problem.hosts | problem.units)
    if len(units):
        for number, lane in enumerate(assignment.lanes):
            assignment.fill(lane, problem.rows(problem.is_host), units, number)
    at_leaf = problem.hosts[problem.fabric.destination_switch]
    rows = problem.rows(problem.others & ~at_leaf)
    for number, lane in enumerate(assignment.lanes):
        if not len(rows) or not assignment.fill(lane, rows, hosts, number):
            break
    assignment.level[assignment.level == UNPLACED] = 0


def _balance(assignment: LaneAssignment, budget: int, spread: bool, mix: JobMix | None) -> None:
    """Balances the traffic over its lanes; with `spread` over unused lanes, too."""
    problem, lanes = assignment.problem, assignment.lanes
    if len(lanes) > 1:
        sources = sources_of(problem.fabric, mix or JobMix(()))
        even_out(
            problem.net, sources, assignment.trees, problem.root,
            problem.rows(problem.is_host), problem.fabric.destinations, problem.hosts,
            shared_by(lanes), np.zeros(len(lanes)), assignment.level,
        )  # fmt: skip
    if spread and len(lanes) < budget:
        _split(assignment, budget - len(lanes))


def _split(assignment: LaneAssignment, free: int) -> None:
    """Every lane, the first ones first, gives every second of its destinations to a free lane."""
    problem = assignment.problem
    turn = np.tile(np.arange(problem.fabric.destinations), problem.offsets)
    used = len(assignment.lanes)
    ways = [1 + (free + used - 1 - lane) // used for lane in range(used)]
    target, after = np.zeros((used, max(ways)), np.uint8), used
    for lane, count in enumerate(ways):
        target[lane] = lane
        target[lane, 1:count] = np.arange(after, after + count - 1)
        after += count - 1
    place = turn[:, None] % np.array(ways)[assignment.level]
    assignment.level = target[assignment.level, place]
    assignment.lanes += [assignment.new_lane() for _ in range(after - used)]


def _routes_of(routes: Routes, assignment: LaneAssignment, remarks: tuple[str, ...]) -> Routes:
    shape = routes.egress.shape
    lanes = len(assignment.lanes)
    if assignment.method:
        routes = replace(
            routes,
            engine=f"{routes.engine}+{assignment.method}",
            egress=assignment.trees.reshape(shape),
            remarks=(*routes.remarks, *remarks),
            regular=assignment.method in WORDS,
            mark=0,
        )
    levels = assignment.level.reshape(shape) if lanes > 1 else None
    return follow_hosts(
        assignment.problem.fabric, replace(routes, service_level=levels, virtual_lanes=lanes)
    )


def follow_hosts(fabric: Fabric, routes: Routes) -> Routes:
    """Routes to a leaf switch itself, or to a unit in it, become those to its host of lowest GUID:
    that adds no dependency and no lane. Other paths that fit no lane get the first; if that closes
    a credit loop, the check reports it."""
    order = np.lexsort((fabric.terminal_guid, fabric.terminal_switch))
    order = order[fabric.is_host_port[order]]
    leaves, first = np.unique(fabric.terminal_switch[order], return_index=True)
    guide = np.full(fabric.switches, -1)
    guide[leaves] = order[first]
    others = np.ones(fabric.destinations, np.bool_)
    others[: fabric.terminals] = ~fabric.is_host_port
    d = np.flatnonzero(others & (guide[fabric.destination_switch] >= 0))
    like, at = guide[fabric.destination_switch[d]], fabric.destination_switch[d]
    egress = routes.egress.copy()
    egress[:, d] = egress[:, like]
    egress[:, d, at] = fabric.destination_port[d]
    levels: U8 | None = None
    if routes.service_level is not None:
        levels = routes.service_level.copy()
        levels[:, d] = levels[:, like]
    return replace(routes, egress=egress, service_level=levels)
