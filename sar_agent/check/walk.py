"""The walk that every proof is made of: K tables, followed from all senders over live cables.

Switches change over one by one, in any order, so a packet may meet the entry of any of K tables at
each switch. Its path in any mixture is a path in the graph in which each switch forwards by all of
its entries. Without a circle the packet visits no switch twice, so for each path of the graph there
is a mixture that takes it: one walk of the graph covers all K^S mixtures. One table is K = 1.

The way of one packet through it (`walk`, for each destination): `_lay_out` reads where the entries
of all tables lead from each switch. The packet leaves its host's switch by one of the entries
there, in the lanes that its service levels give it: `_begin` marks each entry of that switch with
these lanes. `_remove` takes it from switch to switch, in Kahn's order: switches to which no switch
forwards are removed first, and each further one once all that forward to it are removed. So when a
switch is removed, all packets that can come there have come, and its marks are complete. There
`_pass_on` lets the packet wait: it holds the channel by which it came, and asks for that of each
table's entry at the next switch. That is a *dependency* (switch, port, port of the next switch),
which `_count` adds to the plane of its lane; and the entries there get its marks, in the lane in
which it goes on. No path is followed, so the time does not depend on the length of paths, and
hardly a branch is mispredicted. What is not removed is on a circle, or behind one:
`_cut_unreached` takes out what no packet can reach, and the walk tries once more.

Two things can go wrong for one destination:

- *Circle.* The entries lead a packet in a circle.
- *Drop.* A packet whose old path is complete (for some choice of the entries of unconfirmed
  switches) is forwarded by a new entry to a switch that may have an old entry which leads nowhere.
  (Entries that lead nowhere now lose packets until the new entries come. That is known, but no
  other packets may be sent to them.)

The third, a credit loop, needs all dependencies together (`order.py`).

**Weak spot:** no numbers can verify that no packet is dropped. This part rests on the marks of
`_drops` and on the tests that try every mixture.

`trace` asks one table where each packet ends and after how many hops. It is a walk of its own: it
names what is broken, and the walk above knows a broken tree only as a whole. **Weak spot:** hops
are counted in 16 bits, enough for 32,765 switches on a path.

The kernel is compiled for 1, 2, 4 and 6 tables: the number is the length of a tuple, which the
compiler knows, so one table takes no longer than if there were no others.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.wiring import Wiring
from sar_agent.fabric.model import U8, U16, U32, Bool
from sar_agent.util.kernels import kernel, kernel_part

A = TypeVar("A", bound=np.ndarray[Any, Any])
FINE, CIRCLE, DROP = 0, 1, 2
LOOP = -(1 << 15)
"""`trace`: the packet comes back to a switch."""

Rows = tuple[U8, ...]
"""K times uint8[D, S], contiguous and read-only: the old tables, the new ones, entries that
switches may have instead of the old (the old where all are confirmed), and earlier tables. K is 1
for tables by themselves, 2 where only the first two exist, else 4 or 6."""
Planes = NDArray[np.unsignedinteger[Any]]
"""uint16[2 L, S · P · P]: destinations per dependency (s, p, q) at (s · P + p) · P + q, counted up
to 65,535; the first L planes for traffic between hosts in each lane, then for all other. Of more
than one table, only whether there is any."""


def no_dependencies(wiring: Wiring) -> Planes:
    """Planes of zeros."""
    size = wiring.switches * int(wiring.ports) ** 2
    return np.zeros((2 * int(wiring.lanes), size), np.uint16)


def read_only(array: A) -> A:
    """A contiguous, read-only view, so that kernels see one type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view  # type: ignore[return-value]


class _Graph(NamedTuple):
    """Where the entries for one destination lead, and how far the walk has come. Two more nodes
    are nowhere: S, to which an entry without a live cable leads, and S + 1, behind a switch that is
    down or that no packet reaches."""

    row: U8
    """uint8[K, S]: the port of each table's entry."""
    following: U16
    """uint16[K, S]: the node to which it leads."""
    degree: U32
    """uint32[S + 2]: entries of switches that are not removed yet which lead to each node."""
    depth: U32
    """uint32[S + 2]: hops of the longest path to each node, of what was removed."""
    mark: U32
    """uint32[K, S]: the traffic and lanes that leave by the entry, as in `Wiring.sends`."""
    queue: U32
    """uint32[S + 1]: switches in the order in which they are removed."""


@kernel
def walk(
    wiring: Wiring,
    rows: Rows,
    levels: Rows,
    handed: U16,
    selected: Bool,
    everywhere: bool,
    planes: Planes,
) -> tuple[U8, np.uint32]:  # pragma: no cover
    """uint8[D]: FINE, CIRCLE or DROP for each destination in `selected` (bool[D]) of one offset;
    adds their dependencies to `planes`. Also the hops of the longest path from any switch.

    `levels` are those of `rows`, each uint8[D, S], or uint8[D, 0] where they determine no lane; all
    but the new rows may be broken. `handed` uint16[D, S] (or uint16[D, 0]) are bit sets of levels
    that connections still use. With `everywhere`, packets may begin at every live switch, and any
    entry there that leads nowhere is a `DROP`. A tree with a circle has not all of its
    dependencies in `planes`."""
    switches, graph = wiring.sends.shape[1], _room(wiring, rows)
    sends, longest = np.ones(switches, np.uint32), np.uint32(0)
    outcome = np.zeros(len(selected), np.uint8)
    for d in range(len(selected)):
        if not (selected[d] and wiring.destination_kind[d]):
            continue
        dead_ends = _lay_out(wiring, rows, d, graph)
        if everywhere and dead_ends:
            outcome[d] = DROP
            continue
        if levels[0].shape[1]:
            _find_lanes(wiring.lanes, levels, handed, d, sends)
        _begin(wiring, rows, d, sends, graph)
        removed = _remove(wiring, rows, graph, planes)
        if removed < switches and not everywhere:  # a circle matters only where packets can come
            _cut_unreached(wiring.sends[wiring.destination_kind[d] - np.uint32(1)], graph)
            removed = _remove(wiring, rows, graph, planes)
        longest = max(longest, graph.depth[wiring.root[d]])
        if removed < switches:
            outcome[d] = CIRCLE
        elif dead_ends and len(rows) > 1 and _drops(wiring, d, graph):
            outcome[d] = DROP
    return outcome, longest


@kernel_part
def _room(wiring: Wiring, rows: Rows) -> _Graph:  # pragma: no cover
    """Room for one destination at a time."""
    tables, switches = len(rows), wiring.sends.shape[1]
    return _Graph(
        np.empty((tables, switches), np.uint8),
        np.empty((tables, switches), wiring.next.dtype),
        np.empty(switches + 2, np.uint32),
        np.empty(switches + 2, np.uint32),
        np.zeros((tables, switches), np.uint32),
        np.empty(switches + 1, np.uint32),
    )


@kernel_part
def _lay_out(wiring: Wiring, rows: Rows, d: int, graph: _Graph) -> bool:  # pragma: no cover
    """Reads the entries for destination `d`. Whether any but those of its last switch, which end at
    the destination, lead nowhere."""
    ports, one = wiring.ports, np.uint32(1)
    switches, tables = np.uint32(wiring.sends.shape[1]), len(rows)
    row, following, degree, root = graph.row, graph.following, graph.degree, wiring.root[d]
    degree[:] = 0
    graph.depth[:] = 0
    wrong_ends = 0
    for k in range(tables):
        at, entries = np.uint32(0), rows[k][d]
        for s in range(switches):
            port = np.uint32(entries[s])
            w = wiring.next[at + (port if port < ports else ports)]
            at += ports + one
            row[k, s] = port
            following[k, s] = w
            degree[w] += one
        wrong_ends += entries[root] != wiring.last[d]
    return wrong_ends > 0 or degree[switches] != tables


@kernel_part
def _begin(
    wiring: Wiring, rows: Rows, d: int, sends: U32, graph: _Graph
) -> None:  # pragma: no cover
    """Marks the entries by which packets to `d` leave the switches of their hosts; `sends`
    uint32[S] are the lanes in which they begin, unless lanes are chosen hop by hop."""
    kind, by_hop = wiring.destination_kind[d] - np.uint32(1), len(wiring.hop_lane) > 0
    for s in range(len(sends)):
        own = wiring.sends[kind, s] * sends[s]  # in all these lanes instead of lane 0
        for k in range(len(rows)):
            if by_hop:
                port = graph.row[k, s]
                own = wiring.begin[kind, s, port] if port < wiring.ports else np.uint32(0)
            graph.mark[k, s] = own


@kernel_part
def _remove(
    wiring: Wiring, rows: Rows, graph: _Graph, planes: Planes
) -> np.uint32:  # pragma: no cover
    """Removes switches in Kahn's order, and takes their packets on; returns how many."""
    switches, one = np.uint32(wiring.sends.shape[1]), np.uint32(1)
    following, degree, depth, queue = graph.following, graph.degree, graph.depth, graph.queue
    degree[switches] += one  # these two are never removed
    degree[switches + one] += one
    taken, i = np.uint32(0), np.uint32(0)
    for s in range(switches):
        queue[taken] = s
        taken += np.uint32(degree[s] == 0)
    while i < taken:
        v = queue[i]
        i += one
        for k in range(len(rows)):
            w = np.uint32(following[k, v])
            left = degree[w] - one
            degree[w] = left
            depth[w] = max(depth[w], depth[v] + one)
            queue[taken] = w
            taken += np.uint32(left == 0)
            if graph.mark[k, v] and w < switches:
                _pass_on(wiring, rows, graph, planes, k, v, w)
    return taken


@kernel_part
def _pass_on(
    wiring: Wiring, rows: Rows, graph: _Graph, planes: Planes, k: int, v: np.uint32, w: np.uint32
) -> None:  # pragma: no cover
    """Packets come from switch `v` by the entry of table `k` to switch `w`, and wait there for the
    channel of each table's entry."""
    one, lanes, ports = np.uint32(1), wiring.lanes, wiring.ports
    passing, port = graph.mark[k, v], np.uint32(graph.row[k, v])
    for then in range(len(rows)):
        asked = np.uint32(graph.row[then, w])
        if asked >= ports:
            continue
        on = passing
        if len(wiring.hop_lane) > 0:  # all packets of a kind go on in one lane
            lane = np.uint32(wiring.hop_lane[w, wiring.entry[v, port], asked])
            on = one << lane if passing & ((one << lanes) - one) else np.uint32(0)
            on |= one << (lanes + lane) if passing >> lanes else np.uint32(0)
        graph.mark[then, w] |= on
        _count(planes, (v * ports + port) * ports + asked, passing)


@kernel_part
def _count(planes: Planes, dependency: np.uint32, held: np.uint32) -> None:  # pragma: no cover
    """Counts a dependency of the traffic and lanes `held` in their planes."""
    one, plane = np.uint32(1), np.uint32(0)
    while held:
        if held & one:
            count = planes[plane, dependency]
            planes[plane, dependency] = count + (count < 65535)
        held >>= one
        plane += one


@kernel_part
def _find_lanes(
    lanes: np.uint32, levels: Rows, handed: U16, d: int, sends: U32
) -> None:  # pragma: no cover
    """Puts the lanes in which each switch's hosts send to destination `d` into `sends` uint32[S]: a
    connection keeps the service level with which it was established."""
    one = np.uint32(1)
    for s in range(len(sends)):
        found, level = np.uint32(0), np.uint32(0)
        for k in range(len(levels)):
            found |= one << np.uint32(levels[k][d, s]) % lanes
        left = np.uint32(handed[d, s]) if handed.shape[1] else np.uint32(0)
        while left:
            if left & one:
                found |= one << level % lanes
            left >>= one
            level += one
        sends[s] = found


@kernel_part
def _cut_unreached(senders: U32, graph: _Graph) -> None:  # pragma: no cover
    """Takes out the entries of switches that no packet of `senders` reaches, and counts `degree`
    again."""
    following, degree, queue = graph.following, graph.degree, graph.queue
    tables, switches = following.shape
    reached, depth = np.zeros(switches, np.bool_), 0
    for s in range(switches):
        if senders[s]:
            reached[s] = True
            queue[depth] = s
            depth += 1
    while depth:
        depth -= 1
        v = queue[depth]
        for k in range(tables):
            w = following[k, v]
            if w < switches and not reached[w]:
                reached[w] = True
                queue[depth] = w
                depth += 1
    degree[:] = 0
    for k in range(tables):
        for s in range(switches):
            if not reached[s]:
                following[k, s] = switches + 1
            degree[following[k, s]] += 1


@kernel_part
def _drops(wiring: Wiring, d: int, graph: _Graph) -> bool:  # pragma: no cover
    """Whether a packet whose old path may be complete can come to an old entry that leads nowhere;
    all switches were removed. Uses `degree` for other marks.

    Old entries are those of tables 0 and 2; no switch has the entries of earlier tables any more.
    """
    row, following, order, come = graph.row, graph.following, graph.queue, graph.degree
    tables, switches = following.shape
    root, last, olds = wiring.root[d], wiring.last[d], min(tables, 3)
    good = np.zeros(switches + 2, np.bool_)  # whether an old path from here is complete
    for i in range(switches - 1, -1, -1):
        v = order[i]
        for k in range(0, olds, 2):
            good[v] |= good[following[k, v]] or (v == root and row[k, v] == last)
    senders = wiring.sends[wiring.destination_kind[d] - np.uint32(1)]
    # Packets with a complete old path: 1 still on it, 2 led off it.
    for s in range(switches):
        come[s] = 1 if senders[s] and good[s] else 0
    for i in range(switches):
        v = order[i]
        if not come[v]:
            continue
        led = off = come[v] & 2
        for k in range(0, olds, 2):
            w = following[k, v]
            if w < switches:
                come[w] |= come[v] if good[w] else led
                off |= 2 if good[w] and row[k, v] != row[1, v] else 0
            elif v == root and row[k, v] == last:
                off |= 2 if row[1, v] != last else 0
            elif led:
                return True
        if following[1, v] < switches:
            come[following[1, v]] |= off
    return False


def trace(wiring: Wiring, table: U8, selected: Bool) -> NDArray[np.int16]:
    """int16[D, S]: hops between switches from each switch to the destinations `selected` (bool[D])
    by `table` uint8[D, S]; where a packet is lost, -1 less the hops to there, or `LOOP`. 0 for
    other destinations."""
    return _trace(wiring, read_only(table), selected)


@kernel
def _trace(wiring: Wiring, table: U8, selected: Bool) -> NDArray[np.int16]:  # pragma: no cover
    """`trace`."""
    switches, ports, one = np.uint32(wiring.sends.shape[1]), wiring.ports, np.uint32(1)
    hops = np.zeros((len(table), switches), np.int16)
    path = np.empty(switches, np.uint32)
    new, on_path = LOOP + 1, LOOP + 2
    for d in range(len(selected)):
        if not selected[d]:
            continue
        row, here = table[d], hops[d]
        here[:] = new
        for s in range(switches):
            depth, v = 0, np.uint32(s)
            while v < switches and here[v] == new:
                here[v] = on_path
                path[depth] = v
                depth += 1
                port = np.uint32(row[v])
                v = np.uint32(wiring.next[v * (ports + one) + (port if port < ports else ports)])
            if v >= switches and depth:
                depth -= 1
                v = path[depth]
                here[v] = 0 if v == wiring.root[d] and row[v] == wiring.last[d] else -1
            far = LOOP if here[v] == on_path else here[v]
            while depth:
                depth -= 1
                far += 0 if far == LOOP else 1 if far >= 0 else -1
                here[path[depth]] = far
    return hops
