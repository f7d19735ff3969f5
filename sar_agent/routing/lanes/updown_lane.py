"""Best effort: paths that fit no lane become Up*/Down* paths in the last one (Autonet's rule).

With a height for each switch, paths that first only go up and then only go down close no cycle,
however many there are, and on a connected fabric every pair has one. A table has one entry for a
destination, so where such a path passes a switch, all other paths through that switch must follow
it: their sources move to the last lane, too, on Up*/Down* paths of their own, until none is left.
O(S (S + C)) for each destination that has such a path, at the worst.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, Bool
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.hop_counts import FAR, all_hops
from sar_agent.routing.lanes.lane_assignment import LaneAssignment
from sar_agent.util.kernels import kernel

_FAR = 1 << 30


def up_order(fabric: Fabric) -> I32:
    """int32[S]: each switch's height, 0 the top: by hops from the switch that has the fewest hops
    to all hosts, then by GUID."""
    hops = all_hops(graph_of(fabric))
    reached = np.where(hops == FAR, 0, hops).astype(np.int64)
    sums = reached @ np.maximum(fabric.terminals_at, 0)
    sums[~fabric.switch_up] = np.iinfo(np.int64).max
    top = np.lexsort((fabric.switch_guid, sums))[0]
    order = np.lexsort((fabric.switch_guid, hops[top]))
    height = np.empty(fabric.switches, np.int32)
    height[order] = np.arange(fabric.switches)
    return height


def use_updown_paths(assignment: LaneAssignment, lanes: int) -> int:
    """Reduces an assignment to `lanes` lanes: paths in the last of them and above, and unplaced
    ones, get new entries and go to that lane. Returns how many paths these are."""
    problem = assignment.problem
    fabric = problem.fabric
    rows = problem.rows(problem.is_host)
    height = up_order(fabric)
    used = np.zeros(max(1, fabric.channels), np.int32)
    moved: int = _use_updown_paths(
        graph_of(fabric), height, np.argsort(height).astype(np.uint32), problem.net.channel,
        problem.root, rows, problem.hosts, lanes - 1, used, assignment.trees, assignment.level,
    )  # fmt: skip
    last = assignment.single_lane(assignment.level, lanes - 1)
    assert last is not None, "Up*/Down* paths close no cycle"
    assignment.lanes = [*assignment.lanes[: lanes - 1], last]
    return moved


@kernel
def _use_updown_paths(
    graph: Graph,
    height: I32,
    by_height: U32,
    channel: U32,
    root: U32,
    rows: U32,
    sends: Bool,
    last: int,
    used: I32,
    trees: U8,
    level: U8,
) -> int:  # pragma: no cover
    """Rewrites entries in `trees` uint8[R, S] and levels in `level` uint8[R, S]; returns how many
    paths are Up*/Down* paths now."""
    total = 0
    switches, channels = len(height), np.uint32(len(graph.target))
    one, none = np.uint32(1), np.uint8(channel.shape[1] - 1)
    moved, on_way = np.empty(switches, np.bool_), np.empty(switches, np.bool_)
    via, far = np.empty(switches, np.uint32), np.empty(switches, np.int32)
    queue = np.empty(switches, np.uint32)
    for row in rows:
        tree, end = trees[row], root[row]
        any_moved = False
        for s in range(switches):
            moved[s] = sends[s] and np.uint32(s) != end and level[row, s] >= last
            any_moved |= moved[s]
            if sends[s] and np.uint32(s) == end and level[row, s] > last:
                level[row, s] = last
        if not any_moved:
            continue
        # Which switches come down to the destination: a search from it that goes up only …
        far[:] = _FAR
        far[end], queue[0] = 0, end
        i, size = np.uint32(0), one
        while i < size:
            u = queue[i]
            i += one
            for into in range(graph.offset[u], graph.offset[u + one]):
                v = graph.target[into]
                if graph.up[into] and height[v] < height[u] and far[v] == _FAR:
                    far[v] = far[u] + 1
                    queue[size] = v
                    size += one
        # … and the others go up to the nearest of these, from the top on.
        for v in by_height:
            down = far[v] < _FAR
            best = far[v] - 1 if down else _FAR
            least = -1
            for out in range(graph.offset[v], graph.offset[v + one]):
                w = graph.target[out]
                if not graph.up[out] or (height[w] > height[v]) != down:
                    continue
                if far[w] < best or (far[w] == best and (least < 0 or used[out] < least)):
                    best, least, via[v] = far[w], used[out], out
            if not down and least >= 0:
                far[v] = best + 1
        for s in range(switches):
            moved[s] &= far[s] < _FAR
        on_way[:] = False
        changed = True
        while changed:
            for s in range(switches):
                v = np.uint32(s)
                while moved[s] and v != end and not on_way[v]:
                    on_way[v] = True
                    v = graph.target[via[v]]
            changed = False
            for s in range(switches):
                v = np.uint32(s)
                if not sends[v] or moved[v]:
                    continue
                hops, c = 0, np.uint32(0)
                while v != end and not on_way[v] and c < channels and hops < switches:
                    c = channel[v, tree[v] if tree[v] < none else none]
                    v = graph.target[c] if c < channels else v
                    hops += 1
                if on_way[v] and far[s] < _FAR:
                    moved[s] = changed = True
        for s in range(switches):
            if on_way[s]:
                tree[s] = graph.port[via[s]]
                used[via[s]] += 1
            if moved[s]:
                level[row, s] = last
                total += 1
    return total
