"""What mixtures of old tables and new may do, in words: to whose packets, by which entries."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sar_agent.check.credit_loops import credit_loop
from sar_agent.check.hop_lanes import hop_loop
from sar_agent.check.mixed_tables import CIRCLE, DROP
from sar_agent.check.table_sets import Pair, TableSets
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8

if TYPE_CHECKING:  # it takes a sixth of a second to load, which most starts need not wait for
    import networkx as nx


def loop(mixer: TableSets, pair: Pair, planes: U8) -> str:
    """The credit loop in words, each of its steps with a destination that may take it."""
    if mixer.by_hop:
        found = hop_loop(mixer.wiring, mixer.hops, planes, everyone=False)
        cycle = [int(mixer.fabric.channel_by_port[s, p]) for s, p, _ in found]
        lane = f"lanes {', '.join(sorted({str(lane) for *_, lane in found}))}"
    else:
        by_lane = credit_loop(mixer.fabric, mixer.wiring, planes)
        assert by_lane, "what cannot be peeled has a cycle"
        lane, cycle = f"lane {by_lane[0]}", by_lane[1]
    if not mixer.same_lanes:
        lane = "any lane (lanes are others, too)"
    steps = [
        f"{mixer.fabric.channel_name(a)}{_towards(mixer, pair, a, b)}"
        for a, b in pairwise([*cycle, cycle[0]])
    ]
    more = f" … ({len(steps)} channels)" if len(steps) > 8 else ""
    return f"a credit loop in {lane}: {', '.join(steps[:8])}{more}, and back"


def hazard(mixer: TableSets, pair: Pair, found: I32) -> str:
    """The first destination that may be harmed, in words; empty where none is."""
    for kind, words in ((CIRCLE, "could go round"), (DROP, "could be lost")):
        if len(at := np.argwhere(found == kind)):
            o, d = map(int, at[0])
            way = _way(mixer, pair, o, d, kind)
            more = f", and {len(at) - 1} more destinations" if len(at) > 1 else ""
            return f"packets to {_name(mixer.fabric, d)} {words}: {way}{more}"
    return ""


def lost(mixer: TableSets) -> str:
    """Whose packets are lost by the old tables alone, in words; empty where nobody's are."""
    dead = np.argwhere(mixer.dead(mixer.old.egress, np.ones(mixer.old.egress.shape[:2], np.bool_)))
    if not len(dead):
        return ""
    more = f" and {len(dead) - 1} more destinations" if len(dead) > 1 else ""
    return f"packets to {_name(mixer.fabric, int(dead[0][1]))}{more} are lost now"


def _name(fabric: Fabric, d: int) -> str:
    if d < fabric.terminals:
        return f"{fabric.terminal_host[d]} (port {fabric.terminal_guid[d]:#x})"
    return f'switch "{fabric.switch_name[d - fabric.terminals]}"'


def _towards(mixer: TableSets, pair: Pair, first: int, then: int) -> str:
    """A destination whose packets may hold `first` and ask for `then`."""
    fabric, ports = mixer.fabric, int(mixer.wiring.ports)
    s, w = int(fabric.channel_source[first]), int(fabric.channel_source[then])
    p, q = int(fabric.channel_port[first]), int(fabric.channel_port[then])
    at = (s * ports + p) * ports + q
    tables = [table for _, table in _ages(mixer, pair)]
    held = np.logical_or.reduce([table[..., s] == p for table in tables])
    asked = np.logical_or.reduce([table[..., w] == q for table in tables])
    hosts = np.arange(held.shape[1]) < fabric.terminals
    for o, d in np.argwhere(held & asked & hosts):
        only = np.zeros(held.shape, np.bool_)
        only[o, d] = True
        planes = mixer.planes()
        mixer.mix(pair, only, planes)
        if planes[: len(planes) // 2, at].any():
            ages = [age for age, table in _ages(mixer, pair) if table[o, d, s] == p]
            both = {"old", "new"} <= set(ages)
            return (
                f" (to {fabric.terminal_host[d]}, {'both entries' if both else ages[0] + ' entry'})"
            )
    return ""


def _ages(mixer: TableSets, pair: Pair) -> list[tuple[str, U8]]:
    """Whose entries packets may meet, uint8[O, D, S] each: the old ones first."""
    found = [("old", pair[0].egress), ("new", pair[1].egress)]
    if pair[0].had.size:
        found.append(("unconfirmed", pair[0].had))
    return found + [("earlier", tables.egress) for tables in mixer.also]


def _way(mixer: TableSets, pair: Pair, o: int, d: int, kind: int) -> str:
    """The circle, or the way to where packets are lost, with the age of each entry."""
    import networkx as nx

    fabric, wiring = mixer.fabric, mixer.wiring
    graph: nx.DiGraph[int] = nx.DiGraph()
    onward: dict[int, int] = {}
    ends: set[int] = set()
    root = int(wiring.root[d])
    for age, table in reversed(_ages(mixer, pair)):
        for s in range(fabric.switches):
            port = int(table[o, d, s])
            w = int(wiring.next[s * (int(wiring.ports) + 1) + min(port, int(wiring.ports))])
            if w < fabric.switches:
                graph.add_edge(s, w, age=age)
                onward[s] = w  # the old ones come last
            elif age in ("old", "unconfirmed") and not (s == root and port == wiring.last[d]):
                ends.add(s)
                onward.pop(s, None)
    senders = np.flatnonzero(wiring.sends[wiring.asks[d] - 1]).tolist()
    if kind == CIRCLE:
        for sender in senders:
            circle = _circle_from(graph, sender) if sender in graph else []
            if circle:
                return _arrows(fabric, graph, circle)
    for sender in senders:
        v = sender
        for _ in range(fabric.switches):
            v = onward.get(v, v)
        for end in sorted(ends - {v}) if v not in ends and sender in graph else ():
            if end in graph and nx.has_path(graph, sender, end):
                path: list[int] = nx.shortest_path(graph, sender, end)
                end_of_it = f', where the old entry of "{fabric.switch_name[end]}" leads nowhere'
                return _arrows(fabric, graph, pairwise(path)) + end_of_it
    return "by a way that was not found again"


def _arrows(fabric: Fabric, graph: nx.DiGraph[int], edges: Iterable[tuple[int, int]]) -> str:
    names = fabric.switch_name
    return ", ".join(
        f'"{names[a]}" -> "{names[b]}" ({graph.edges[a, b]["age"]} entry)' for a, b in edges
    )


def _circle_from(graph: nx.DiGraph[int], sender: int) -> list[tuple[int, int]]:
    """Edges of a circle that packets from `sender` may come to; empty where there is none."""
    import networkx as nx

    try:
        return list(nx.find_cycle(graph, sender))
    except nx.NetworkXNoCycle:
        return []
