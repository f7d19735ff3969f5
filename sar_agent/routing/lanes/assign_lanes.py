"""Virtual lanes for any tables: one wherever that will do.

It tries, in this order: one lane for all paths; with `hosts_use_path_records`, path by path into
layers (`lane_assignment.py`), and the same again in another order; the tables of `updn`, which need
one lane on any fabric, where their largest load is at most `WORTH` times that of the engine's
tables; else lanes hop by hop, which are transparent to hosts (`hop.py`), for the engine's tables,
then for others as short; with `best_effort`, `updn` whatever it loads. Else the fabric is refused,
and what routes it now stays. By path, a packet's lane follows from its service level, which depends
on (source switch, destination) and which hosts must take from path records (docs/lanes.md).

Layers of paths are LASH's and DFSSSP's method (Skeie et al., IPDPS 2002; Domke et al., IPDPS 2011).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.errors import InputError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.shortest_path_dag import new_cache
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.lanes.even_lanes import even_out, shared_by
from sar_agent.routing.lanes.hop import hop_lanes
from sar_agent.routing.lanes.lane_assignment import MOST_LANES, LaneAssignment, LaneProblem
from sar_agent.routing.lanes.place_paths import UNPLACED
from sar_agent.routing.routes import UPDN_INSTEAD, Routes
from sar_agent.routing.updn import Updn
from sar_agent.routing.weighted_trees import sources_of

INFINIBAND_LANES = 15
"""Data lanes of InfiniBand; the sixteenth lane is for management."""
WORTH = 1.3
"""How many times the largest load of the engine's tables `updn` may have instead of more lanes."""


def assign_lanes(
    fabric: Fabric, routes: Routes, options: Options, mix: JobMix | None = None
) -> Routes:
    """`routes` with `service_level` and `virtual_lanes` such that no lane has a credit loop between
    hosts, or with `hop_lane`, or the tables of `updn` instead.

    `mix`: the traffic that is balanced over lanes and whose largest load decides; without it all
    pairs count alike. Routes that need one lane are returned as they are. Where tables were
    replaced the engine's name gets an ending (`+updn`, `+hop`); `remarks` explain `+updn`. Raises
    `Unserved` where no lanes suffice and `updn` loads a link too much; `InputError` for bad
    budgets.
    """
    budget = lane_budget(fabric, options)
    problem = LaneProblem(fabric, len(routes.egress))
    plain = LaneAssignment(problem, routes.egress.reshape(-1, fabric.switches))
    if plain.single_lane():
        return routes
    needed = ""
    if options.hosts_use_path_records and budget > 1:
        plain.assign()
        if plain.complete and (len(plain.lanes) > budget or plain.last_nearly_empty):
            plain.reassign()
        if plain.complete and len(plain.lanes) <= budget:
            _place_others(plain)
            _balance(plain, budget, options.spread_lanes, mix)
            return _routes_of(routes, plain)
        count = str(len(plain.lanes)) if plain.complete else f"more than {MOST_LANES}"
        needed = f"{count} virtual lanes are needed to avoid credit loops by path, not {budget}; "
    if not all(_ends(fabric, tables) for tables in routes.egress):
        return routes  # a forwarding loop, which the check reports
    other, much, cost = _updn_instead(fabric, routes, options, mix)
    if much and budget > 1 and not options.hosts_use_path_records:
        laid = hop_lanes(fabric, routes, budget) or hop_lanes(fabric, routes, budget, True)
        if laid is not None:
            return laid
        needed = f"no {budget} virtual lanes chosen hop by hop were found; "
    if much and not options.best_effort:
        raise Unserved(
            f"{routes.engine}: {needed}its routes close a credit loop in one virtual lane, and "
            f"{cost}, not at most {WORTH:g} times; the tables in force stay. {_way_out(options)}; "
            "best_effort takes Up*/Down* paths whatever they load"
        )
    remark = f"{needed}{routes.engine}'s routes close a credit loop in one virtual lane: {cost}"
    return replace(other, remarks=(*routes.remarks, remark))


def _way_out(options: Options) -> str:
    if options.hosts_use_path_records:
        return "A larger max_lanes allows more lanes"
    return (
        "A larger max_lanes allows lanes hop by hop and, if all hosts take the service level from "
        "path records (hosts_use_path_records), by path"
    )


def lane_budget(fabric: Fabric, options: Options) -> int:
    """How many lanes the routes of LID offset 0 may use. Raises `InputError`."""
    if not 1 <= options.max_lanes <= INFINIBAND_LANES:
        raise InputError(
            f"{options.max_lanes} virtual lanes",
            remedy=f"give 1 to {INFINIBAND_LANES}, as many as the switches have",
        )
    kept = int(options.reserve_lane and fabric.lmc > 0)
    return max(1, options.max_lanes - kept)


def _updn_instead(
    fabric: Fabric, routes: Routes, options: Options, mix: JobMix | None
) -> tuple[Routes, bool, str]:
    """The tables of `updn` at every LID offset, whether their largest load is too much, and both
    loads in words."""
    egress = np.repeat(Updn().route(fabric, JobMix(()), options).egress, len(routes.egress), axis=0)
    theirs, ours = (largest_load(fabric, tables, mix) for tables in (routes.egress, egress))
    cost = f"Up*/Down* paths in one lane load a link up to {ours:.2f}, its own up to {theirs:.2f}"
    other = replace(routes, engine=f"{routes.engine}{UPDN_INSTEAD}", egress=egress, mark=0)
    return other, ours > WORTH * max(1.0, theirs), cost


def _ends(fabric: Fabric, egress: U8) -> bool:
    """Whether every path of uint8[T + S, S] ends somewhere: O(D S log S)."""
    everyone = np.arange(fabric.switches)
    channel = fabric.channel_by_port[everyone, egress]
    after = np.where(channel < 0, everyone, fabric.channel_target[channel])
    far = after
    for _ in range(fabric.switches.bit_length()):
        far = np.take_along_axis(far, far, axis=1)
    return bool((np.take_along_axis(after, far, axis=1) == far).all())


def largest_load(fabric: Fabric, egress: U8, mix: JobMix | None) -> float:
    """The largest load of a link, of the jobs or, without any, of an all-to-all of all hosts, who
    use the LID offsets of `egress` uint8[O, T + S, S] alike."""
    if not mix or not mix.jobs:
        mix = JobMix((make_job("all", np.flatnonzero(fabric.is_host_port)),))
    loads = JobLoads(fabric, graph_of(fabric), new_cache(fabric), mix, "load")
    for tables in egress:
        loads.carry(tables, loads.terminals)
    return loads.peak() / len(egress)


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


def _routes_of(routes: Routes, assignment: LaneAssignment) -> Routes:
    lanes = len(assignment.lanes)
    levels = assignment.level.reshape(routes.egress.shape) if lanes > 1 else None
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
