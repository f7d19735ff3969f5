"""Old tables and new on one fabric, made comparable, and what their mixtures may do."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np

from sar_agent.check.deadlock import credit_loop, loop_free
from sar_agent.check.hop import Hops, hop_loop, hops_of
from sar_agent.check.mixture import CIRCLE, DROP, mix_trees
from sar_agent.check.proof import Proved
from sar_agent.check.wiring import wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.routing.routes import Routes


class Tables(NamedTuple):
    """What switches and path records say at one time."""

    egress: U8
    """uint8[O, D, S]"""
    level: U8
    """uint8[O, D, S], or uint8[O, D, 0] where one lane is enough, or levels do not say it."""

    def with_trees(self, which: Bool, others: Tables) -> Tables:
        """A copy in which the trees `which` (bool[O, D]) are those of `others`."""
        mine = Tables(self.egress.copy(), self.level.copy())
        mine.egress[which], mine.level[which] = others.egress[which], others.level[which]
        return mine


Pair = tuple[Tables, Tables]
"""Old and new."""


class Mixer:
    """Tables `before` (in force; they may be broken) and `after` on the fabric as it is now.

    Where both have the same lanes, each is looked at by itself. Where they have not, SL2VL tables
    change, too, port by port: then all lanes are taken as one, which proves less but nothing false.
    """

    def __init__(self, fabric: Fabric, before: Routes, after: Routes) -> None:
        self.fabric = fabric
        self.same_lanes = _same_lanes(before, after)
        self.by_hop = self.same_lanes and after.hop_lane is not None
        self.wiring = wiring_of(fabric, after.virtual_lanes if self.same_lanes else 1)
        self.hops = (
            hops_of(fabric, after, self.wiring)
            if self.by_hop
            else Hops(
                np.empty((0, 0, 0), np.uint8),
                np.empty((0, 0), np.uint8),
                np.empty((0, 0, 0), np.uint32),
            )
        )
        offsets = max(len(before.egress), len(after.egress))
        self.old, self.new = (
            Tables(_repeated(routes.egress, offsets), self._levels_of(routes, offsets))
            for routes in (before, after)
        )

    def changed(self) -> Bool:
        """bool[O, D]: trees of which an entry or a service level differs."""
        old, new = self.old, self.new
        differs = np.zeros(old.egress.shape[:2], np.bool_)
        up = self.fabric.switch_up
        for o in range(len(differs)):
            differs[o] = ((old.egress[o] != new.egress[o]) & up).any(axis=1)
            differs[o] |= (old.level[o] != new.level[o]).any(axis=1)
        return differs

    def knows(self, proved: Proved) -> bool:
        """Whether the dependencies of `proved`, the new tables' own, are counted as here."""
        return (
            self.same_lanes
            and proved.egress.shape == self.new.egress.shape
            and self.wiring.same_nodes(proved.wiring)
        )

    def planes(self) -> U8:
        """uint8[2 L, S · P · P]: no dependencies."""
        size = self.wiring.switches * int(self.wiring.ports) ** 2
        return np.zeros((2 * int(self.wiring.lanes), size), np.uint8)

    def mix(self, pair: Pair, which: Bool, planes: U8) -> I32:
        """int32[O, D]: `FINE`, `CIRCLE` or `DROP` of the trees `which` (bool[O, D]) between two
        tables; their dependencies are put into `planes`."""
        found = np.zeros(which.shape, np.int32)
        for o in range(len(which)):
            rows = pair[0].egress[o], pair[1].egress[o]
            levels = pair[0].level[o], pair[1].level[o]
            found[o] = mix_trees(
                self.wiring, self.hops, self.by_hop, rows, levels, which[o], planes
            )
        return found

    def acyclic(self, planes: U8) -> bool:
        """Whether no lane has a credit loop between hosts."""
        if self.by_hop:
            return not hop_loop(self.wiring, self.hops, planes, everyone=False)
        return loop_free(self.wiring, planes)[0]

    def loop(self, pair: Pair, planes: U8) -> str:
        """The credit loop in words, each of its steps with a destination that may take it."""
        if self.by_hop:
            found = hop_loop(self.wiring, self.hops, planes, everyone=False)
            cycle = [int(self.fabric.channel_by_port[s, p]) for s, p, _ in found]
            lane = f"lanes {', '.join(sorted({str(lane) for *_, lane in found}))}"
        else:
            loop = credit_loop(self.fabric, self.wiring, planes)
            assert loop, "what cannot be peeled has a cycle"
            lane, cycle = f"lane {loop[0]}", loop[1]
        if not self.same_lanes:
            lane = "any lane (lanes are others, too)"
        steps = [
            f"{self.fabric.channel_name(a)}{self._towards(pair, a, b)}"
            for a, b in pairwise([*cycle, cycle[0]])
        ]
        more = f" … ({len(steps)} channels)" if len(steps) > 8 else ""
        return f"a credit loop in {lane}: {', '.join(steps[:8])}{more}, and back"

    def hazard(self, pair: Pair, found: I32) -> str:
        """The first destination that may be harmed, in words; empty where none is."""
        for kind, words in ((CIRCLE, "could go round"), (DROP, "could be lost")):
            if len(at := np.argwhere(found == kind)):
                o, d = map(int, at[0])
                way = self._way(pair, o, d, kind)
                more = f", and {len(at) - 1} more destinations" if len(at) > 1 else ""
                return f"packets to {self._name(d)} {words}: {way}{more}"
        return ""

    def dead(self, egress: U8, which: Bool) -> Bool:
        """bool[O, D]: trees that do not bring every sender's packets to their destination."""
        found = np.zeros(which.shape, np.bool_)
        wiring = self.wiring
        width, senders = int(wiring.ports) + 1, wiring.sends > 0
        following = wiring.next.reshape(wiring.switches, width)
        everywhere = np.arange(wiring.switches)
        for o, d in np.argwhere(which):
            if not wiring.asks[d]:
                continue
            row, root = egress[o, d], int(wiring.root[d])
            to = following[everywhere, np.minimum(row, width - 1)].astype(np.int64)
            here = np.flatnonzero(senders[wiring.asks[d] - 1])
            for _ in range(wiring.switches):
                here = here[here != root]
                if not len(here) or (here >= wiring.switches).any():
                    break
                here = np.unique(to[here])
            found[o, d] = len(here) > 0 or row[root] != wiring.last[d]
        return found

    def lost(self) -> str:
        """Whose packets are lost by the old tables alone, in words; empty where nobody's are."""
        dead = np.argwhere(self.dead(self.old.egress, np.ones(self.old.egress.shape[:2], np.bool_)))
        if not len(dead):
            return ""
        more = f" and {len(dead) - 1} more destinations" if len(dead) > 1 else ""
        return f"packets to {self._name(int(dead[0][1]))}{more} are lost now"

    def _levels_of(self, routes: Routes, offsets: int) -> U8:
        levels = routes.service_level
        if not self.same_lanes or levels is None or routes.virtual_lanes == 1:
            return np.empty((offsets, routes.egress.shape[1], 0), np.uint8)
        return _repeated(levels, offsets)

    def _name(self, d: int) -> str:
        fabric = self.fabric
        if d < fabric.terminals:
            return f"{fabric.terminal_host[d]} (port {fabric.terminal_guid[d]:#x})"
        return f'switch "{fabric.switch_name[d - fabric.terminals]}"'

    def _towards(self, pair: Pair, first: int, then: int) -> str:
        """A destination whose packets may hold `first` and ask for `then`."""
        fabric, ports = self.fabric, int(self.wiring.ports)
        s, w = int(fabric.channel_source[first]), int(fabric.channel_source[then])
        p, q = int(fabric.channel_port[first]), int(fabric.channel_port[then])
        at = (s * ports + p) * ports + q
        rows = pair[0].egress, pair[1].egress
        held = (rows[0][..., s] == p) | (rows[1][..., s] == p)
        asked = (rows[0][..., w] == q) | (rows[1][..., w] == q)
        hosts = np.arange(held.shape[1]) < fabric.terminals
        for o, d in np.argwhere(held & asked & hosts):
            only = np.zeros(held.shape, np.bool_)
            only[o, d] = True
            planes = self.planes()
            self.mix(pair, only, planes)
            if planes[: len(planes) // 2, at].any():
                old, new = (int(table[o, d, s]) == p for table in rows)
                age = "both entries" if old and new else "old entry" if old else "new entry"
                return f" (to {fabric.terminal_host[d]}, {age})"
        return ""

    def _way(self, pair: Pair, o: int, d: int, kind: int) -> str:
        """The circle, or the way to where packets are lost, with the age of each entry."""
        fabric, wiring = self.fabric, self.wiring
        graph: nx.DiGraph[int] = nx.DiGraph()
        onward: dict[int, int] = {}
        ends: set[int] = set()
        root = int(wiring.root[d])
        for age, table in zip(("new", "old"), reversed(pair), strict=True):
            for s in range(fabric.switches):
                port = int(table.egress[o, d, s])
                w = int(wiring.next[s * (int(wiring.ports) + 1) + min(port, int(wiring.ports))])
                if w < fabric.switches:
                    graph.add_edge(s, w, age=age)
                    onward[s] = w  # the old ones come last
                elif age == "old" and not (s == root and port == wiring.last[d]):
                    ends.add(s)
                    onward.pop(s, None)
        senders = np.flatnonzero(wiring.sends[wiring.asks[d] - 1]).tolist()
        if kind == CIRCLE:
            for sender in senders:
                circle = _circle_from(graph, sender) if sender in graph else []
                if circle:
                    return self._arrows(graph, circle)
        for sender in senders:
            v = sender
            for _ in range(fabric.switches):
                v = onward.get(v, v)
            for end in sorted(ends - {v}) if v not in ends and sender in graph else ():
                if end in graph and nx.has_path(graph, sender, end):
                    path: list[int] = nx.shortest_path(graph, sender, end)
                    lost = f', where the old entry of "{fabric.switch_name[end]}" leads nowhere'
                    return self._arrows(graph, pairwise(path)) + lost
        return "by a way that was not found again"

    def _arrows(self, graph: nx.DiGraph[int], edges: Iterable[tuple[int, int]]) -> str:
        names = self.fabric.switch_name
        return ", ".join(
            f'"{names[a]}" -> "{names[b]}" ({graph.edges[a, b]["age"]} entry)' for a, b in edges
        )


def _circle_from(graph: nx.DiGraph[int], sender: int) -> list[tuple[int, int]]:
    """Edges of a circle that packets from `sender` may come to; empty where there is none."""
    try:
        return list(nx.find_cycle(graph, sender))
    except nx.NetworkXNoCycle:
        return []


def _same_lanes(before: Routes, after: Routes) -> bool:
    """Whether SL2VL tables stay."""
    if before.virtual_lanes != after.virtual_lanes:
        return False
    if before.hop_lane is None or after.hop_lane is None:
        return before.hop_lane is after.hop_lane
    return np.array_equal(before.hop_lane, after.hop_lane)


def _repeated(tables: U8, offsets: int) -> U8:
    """Those of LID offsets that are not there repeat the first, as the plugin has them."""
    missing = offsets - len(tables)
    return np.concatenate([tables, np.repeat(tables[:1], missing, axis=0)]) if missing else tables
