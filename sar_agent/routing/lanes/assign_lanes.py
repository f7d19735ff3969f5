"""Virtual lanes for any tables: no credit loop in any of them, as few lanes as it finds.

In this order, until something fits the budget: all in one lane; lanes hop by hop, for which hosts
need to know nothing (`hop.py`), for the engine's tables or regular ones; path by path into layers
(`sheet.py`); the same once more in another order; on a torus, dimension-ordered tables instead of
the engine's; tables grown while they are laid (`joint.py`); where best effort is asked for,
Up*/Down* paths for what is left (`shelter.py`). Which lane a packet takes is said by its service
level, which is chosen by (source switch, destination): hosts have to ask for it (docs/lanes.md),
but for the first two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sar_agent.errors import InputError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.two_way_search import LaneOrder
from sar_agent.routing.lanes.assignment import MOST_LANES, LaneAssignment, LaneProblem
from sar_agent.routing.lanes.dimensions import dimension_ordered
from sar_agent.routing.lanes.even_lanes import demand_of, even_out, shared_by
from sar_agent.routing.lanes.grid import grid_of
from sar_agent.routing.lanes.hop import hop_lanes
from sar_agent.routing.lanes.joint_assignment import joint_assignment
from sar_agent.routing.lanes.meshes import lanes_after_global, local_global_local, meshes_of
from sar_agent.routing.lanes.place_paths import UNPLACED
from sar_agent.routing.lanes.updown_lane import shelter
from sar_agent.routing.routes import Routes

INFINIBAND_LANES = 15
"""Data lanes there are; the sixteenth is for management."""
HOW = {
    "dimensions": "dimension-ordered: the engine's own routes need {needed} virtual lanes",
    "joint": "chosen for few lanes: the engine's own routes need {needed} virtual lanes",
}
WORDS = {"local-global-local": "local, global, local", "dimensions": "dimension-ordered"}
REGULAR = tuple(f"+{how}" for how in WORDS)
"""Endings of the engine's name where tables were replaced by such as depend on the fabric alone."""
Laid = tuple[LaneAssignment, tuple[str, ...]]


def lay_lanes(
    fabric: Fabric,
    routes: Routes,
    options: Options,
    groups: I32 | None = None,
    mix: JobMix | None = None,
) -> Routes:
    """`routes` with `service_level` and `virtual_lanes` such that no lane has a credit loop between
    hosts; where no lanes suffice for the tables, others.

    `groups` int32[T]: paths to destinations of different groups never share a lane. `mix` says what
    lanes carry; without it all pairs count alike. Routes that need one lane come back as they are.
    Where tables were replaced the engine's name gets an ending (`+dimensions`, `+joint`, `+updn`)
    and `remarks` say why. Raises `Unserved` where lanes run out, `InputError` for bad `groups` or
    budgets.
    """
    began = time.perf_counter()
    budget = lane_budget(fabric, options)
    if groups is not None and groups.shape != (fabric.terminals,):
        raise InputError(
            f"{len(groups)} groups for {fabric.terminals} terminals", remedy="give one for each"
        )
    ground = LaneProblem(fabric, groups, len(routes.egress))
    if len(ground.parts) > budget:
        raise Unserved(
            f"{len(ground.parts)} groups are to share no lane, and there are {budget} virtual lanes"
        )
    plain = LaneAssignment(ground, routes.egress.reshape(-1, fabric.switches))
    if groups is None:
        if plain.one_lane():
            return routes
        if options.lanes == "hop" and (hopped := _hop_by_hop(fabric, routes, budget)):
            return replace(hopped, seconds=routes.seconds + time.perf_counter() - began)
    plain.lay()
    if plain.needed > 1:
        sheet, remarks = _within(plain, budget, options.best_effort)
        _place_others(sheet)
        _balance(sheet, budget, options.spread_lanes, mix)
        routes = _finished(routes, sheet, remarks)
    return replace(routes, seconds=routes.seconds + time.perf_counter() - began)


def lane_budget(fabric: Fabric, options: Options) -> int:
    """Lanes that routes of offset 0 may use. Raises `InputError`."""
    if not 1 <= options.max_lanes <= INFINIBAND_LANES:
        raise InputError(
            f"{options.max_lanes} virtual lanes",
            remedy=f"give 1 to {INFINIBAND_LANES}, as many as the switches have",
        )
    kept = int(options.reserve_lane and fabric.lmc > 0)
    return max(1, options.max_lanes - kept)


def _within(plain: LaneAssignment, budget: int, best_effort: bool) -> Laid:
    """The first attempt that fits. Raises `Unserved`."""
    least = plain
    needed = ""
    for sheet in _attempts(plain, budget):
        if sheet is plain:
            needed = _count(sheet)
        if sheet.complete and sheet.needed <= budget:
            said = HOW[sheet.how].format(needed=needed) if sheet.how else ""
            return sheet, (f"routes are {said}",) if said else ()
        least = min(least, sheet, key=lambda one: one.needed)
    if not best_effort:
        raise Unserved(
            f"credit loops take {_count(least)} virtual lanes to avoid, and there are {budget}; "
            "allow more (max_lanes), or Up*/Down* paths for the rest (best effort)"
        )
    return least, _squeeze(least, budget)


def _hop_by_hop(fabric: Fabric, routes: Routes, budget: int) -> Routes | None:
    """Lanes that no host has to ask for, where there are such: for the engine's tables, or, on a
    Dragonfly or a grid, for those that are regular there."""
    if found := hop_lanes(fabric, routes, budget):
        return found
    many = len(routes.egress), 1, 1
    if budget > 1 and (meshes := meshes_of(fabric)):
        how, tables = "local-global-local", local_global_local(fabric, meshes)
        lane = lanes_after_global(fabric, meshes)
        found = replace(routes, service_level=None, virtual_lanes=2, hop_lane=lane, mark=0)
        found = replace(found, egress=np.tile(tables, many))
    elif grid := grid_of(fabric):
        how, tables = "dimensions", dimension_ordered(fabric, grid)
        found = hop_lanes(fabric, replace(routes, egress=np.tile(tables, many)), budget)
    else:  # some entries become other shortest paths
        return hop_lanes(fabric, routes, budget, other_paths=True)
    if found is None:
        return None
    remark = f"routes are {WORDS[how]}: for the engine's own no lanes hop by hop exist"
    return replace(found, engine=f"{routes.engine}+{how}", remarks=(*routes.remarks, remark))


def _count(sheet: LaneAssignment) -> str:
    return str(sheet.needed) if sheet.complete else f"more than {MOST_LANES}"


def _attempts(plain: LaneAssignment, budget: int) -> Iterator[LaneAssignment]:
    if plain.complete and (plain.needed > budget or plain.hardly):
        plain.again()
    yield plain
    ground = plain.ground
    if grid := grid_of(ground.fabric):
        ordered = dimension_ordered(ground.fabric, grid)
        sheet = LaneAssignment(ground, np.tile(ordered, (ground.offsets, 1)), "dimensions")
        sheet.lay()
        sheet.again()
        yield sheet
    yield joint_assignment(ground, plain.trees)


def _squeeze(sheet: LaneAssignment, budget: int) -> tuple[str, ...]:
    """Takes lanes from the parts that have most, and gives what was in them Up*/Down* paths."""
    counts = [len(lanes) for lanes in sheet.lanes]
    while sum(counts) > budget:
        counts[counts.index(max(counts))] -= 1
    wanted = _count(sheet)
    sheet.trees, sheet.how, moved = sheet.trees.copy(), "updn", 0
    for part, count in enumerate(counts):
        if count < len(sheet.lanes[part]):
            moved += shelter(sheet, part, count)
    hosts = np.tile(sheet.ground.is_host, sheet.ground.offsets).sum() * sheet.ground.hosts.sum()
    return (
        f"best effort: {moved} of {hosts} paths go up, then down, in the last virtual lane, since "
        f"all would need {wanted}",
    )


def _place_others(sheet: LaneAssignment) -> None:
    """Paths from and to what is no host, into the lanes that are there; numbers lanes of all parts
    through. Those to leaf switches are for `follow_hosts`."""
    ground = sheet.ground
    units, hosts = ground.sources(ground.units), ground.sources(ground.hosts | ground.units)
    first, lanes = 0, list[LaneOrder]()
    for part, own in zip(ground.parts, sheet.lanes, strict=True):
        at = ground.rows(part)
        for number, lane in enumerate(own):
            if len(units):
                sheet.put(lane, at, units, number)
        table = sheet.level[at]
        sheet.level[at] = np.where(table == UNPLACED, 0, table) + first
        first += len(own)
        lanes += own
    at_leaf = ground.hosts[ground.fabric.destination_switch]
    rows = ground.rows(ground.others & ~at_leaf)
    for number, lane in enumerate(lanes):
        if not len(rows) or not sheet.put(lane, rows, hosts, number):
            break
    sheet.level[sheet.level == UNPLACED] = 0


def _balance(sheet: LaneAssignment, budget: int, spread: bool, mix: JobMix | None) -> None:
    """Part by part; `spread` over lanes that are left, too."""
    ground = sheet.ground
    demand, free, first = demand_of(ground.fabric, mix), budget - sheet.needed, 0
    for part, lanes in zip(ground.parts, sheet.lanes, strict=False):
        rows, load = ground.rows(part), np.zeros(len(lanes))
        if len(lanes) > 1:
            even_out(
                ground.net, demand, sheet.trees, ground.root, rows, ground.fabric.destinations,
                ground.hosts, shared_by(lanes), first, load, sheet.level,
            )  # fmt: skip
        first += len(lanes)
    if spread and free:
        _split(sheet, free)


def _split(sheet: LaneAssignment, free: int) -> None:
    """Every lane, the ones in front first, gives each second of its destinations to a free one."""
    ground = sheet.ground
    turn = np.tile(np.arange(ground.fabric.destinations), ground.offsets)
    used = sheet.needed
    ways = [1 + (free + used - 1 - lane) // used for lane in range(used)]
    target, after = np.zeros((used, max(ways)), np.uint8), used
    for lane, count in enumerate(ways):
        target[lane] = lane
        target[lane, 1:count] = np.arange(after, after + count - 1)
        after += count - 1
    place = turn[:, None] % np.array(ways)[sheet.level]
    sheet.level = target[sheet.level, place]
    sheet.lanes += [[sheet.new_lane()] for _ in range(after - used)]


def _finished(routes: Routes, sheet: LaneAssignment, remarks: tuple[str, ...]) -> Routes:
    shape = routes.egress.shape
    lanes = sheet.needed
    if sheet.how:
        routes = replace(
            routes,
            engine=f"{routes.engine}+{sheet.how}",
            egress=sheet.trees.reshape(shape),
            remarks=(*routes.remarks, *remarks),
            mark=0,
        )
    levels = sheet.level.reshape(shape) if lanes > 1 else None
    return follow_hosts(
        sheet.ground.fabric, replace(routes, service_level=levels, virtual_lanes=lanes)
    )


def follow_hosts(fabric: Fabric, routes: Routes) -> Routes:
    """What goes to a leaf switch itself, or to a unit in it, travels like what goes to the host at
    it of lowest GUID: no dependency and no lane is added. What lanes do not hold of the rest gets
    the first; the check says so."""
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
