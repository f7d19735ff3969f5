"""Routes and lanes chosen together, for networks that no regular tables suit.

Where a torus lacks a cable, or a network is no torus at all, tables that were made without lanes in
mind may need dozens of them. Here every switch, the nearest to the destination first, takes the
least used of its shortest continuations whose whole path fits the lane; a switch that has none
waits for the next lane. A switch keeps its choice, so a later switch that goes over it in another
lane must fit the rest of the path into that lane, too. O(lanes · D · (S + C)) and the insertions.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import I32, U8, U32, Bool
from sar_agent.routing.graph.csr import ChannelGraph, Graph, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row, new_cache
from sar_agent.routing.graph.successors import PRESENT
from sar_agent.routing.graph.two_way_search import LaneOrder, judge
from sar_agent.routing.lanes.lane_assignment import MOST_LANES, LaneAssignment, LaneProblem
from sar_agent.routing.lanes.place_paths import DOES_NOT, FITS, UNPLACED, TreeWalk
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.util.kernels import kernel, kernel_part


def joint_assignment(problem: LaneProblem, trees: U8) -> LaneAssignment:
    """A complete assignment, or one that needs more than `MOST_LANES`. Rows of destinations that
    are no hosts are those of `trees` uint8[R, S]."""
    fabric = problem.fabric
    assignment = LaneAssignment(problem, trees.copy(), "joint")
    rows = np.tile(problem.is_host, problem.offsets)
    assignment.trees[rows] = NO_ROUTE
    last = np.tile(fabric.destination_port, problem.offsets)
    at = np.flatnonzero(rows)
    assignment.trees[at, problem.root[at]] = last[at]
    graph, cache = graph_of(fabric), new_cache(fabric)
    used = np.zeros(max(1, fabric.channels), np.int32)
    lanes, assignment.left = assignment.lanes, 1
    while assignment.left and len(lanes) < MOST_LANES:
        lanes.append(assignment.new_lane())
        assignment.left = _grow(
            problem.net, lanes[-1], assignment.walk, graph, cache,
            problem.root, problem.rows(problem.is_host), problem.hosts, used, assignment.trees,
            assignment.level, len(lanes) - 1,
        )  # fmt: skip
    return assignment


@kernel
def _grow(
    net: ChannelGraph,
    lane: LaneOrder,
    walk: TreeWalk,
    graph: Graph,
    cache: DagCache,
    root: U32,
    rows: U32,
    sends: Bool,
    used: I32,
    trees: U8,
    level: U8,
    number: int,
) -> int:  # pragma: no cover
    """Chooses the entries of these rows that fit the lane; returns how many switches must wait."""
    known, verdict = walk.known, walk.verdict
    waiting = 0
    known[:] = 0
    for n in range(len(rows)):
        row = rows[n]
        tree, end = trees[row], root[row]
        dag = dag_row(graph, cache, end)
        order, start, edge = cache.order[dag], cache.start[dag], cache.edge[dag]
        known[end], verdict[end] = n + 1, FITS
        if number == 0 and sends[end]:
            level[row, end] = number
        for i in range(np.uint32(1), cache.size[dag]):
            v = order[i]
            if tree[v] != NO_ROUTE:
                continue
            tried, tried_at = np.int64(-1), np.int64(-1)
            while tree[v] == NO_ROUTE:
                least, at = np.int64(1 << 40), np.int64(-1)
                for e in range(start[i], start[i + 1]):
                    use = np.int64(used[edge[e]])
                    later = use > tried or (use == tried and np.int64(e) > tried_at)
                    if later and use < least:
                        least, at = use, np.int64(e)
                if at < 0:
                    break
                tried, tried_at = least, at
                c = edge[at]
                w = graph.target[c]
                if w != end and tree[w] == NO_ROUTE:
                    continue
                if _fits(net, lane, walk, tree, end, n + 1, w) and (
                    w == end or _allowed(net, lane, c, net.channel[w, tree[w]])
                ):
                    tree[v] = graph.port[c]
                    known[v], verdict[v] = n + 1, FITS
                    used[c] += 1
                    if sends[v] and level[row, v] == UNPLACED:
                        level[row, v] = number
            waiting += tree[v] == NO_ROUTE
    return waiting


@kernel_part
def _allowed(
    net: ChannelGraph, lane: LaneOrder, c1: np.uint32, c2: np.uint32
) -> bool:  # pragma: no cover
    state = lane.depends[c1, c2 - net.offset[net.target[c1]]]
    if state:
        return bool(state == PRESENT)
    return judge(lane, c1, c2)


@kernel_part
def _fits(
    net: ChannelGraph,
    lane: LaneOrder,
    walk: TreeWalk,
    tree: U8,
    root: np.uint32,
    number: int,
    source: np.uint32,
) -> bool:  # pragma: no cover
    """Whether the path already chosen from `source` fits the lane; dependencies that do are put
    in."""
    known, verdict, stack = walk.known, walk.verdict, walk.stack
    v, depth = source, np.uint32(0)
    while known[v] != number:
        stack[depth] = v
        depth += np.uint32(1)
        v = net.target[net.channel[v, tree[v]]]
    fits = verdict[v] == FITS
    while depth:
        depth -= np.uint32(1)
        w, v = v, stack[depth]
        if fits and w != root:
            c1, c2 = net.channel[v, tree[v]], net.channel[w, tree[w]]
            fits = _allowed(net, lane, c1, c2)
        known[v], verdict[v] = number, FITS if fits else DOES_NOT
    return bool(fits)
