"""Explains what a mixture of old and new tables can do: to which packets, by which entries.

These sentences are for an administrator; the history and `sar-agent check --from` print them.
**Weak spot:** a path is searched again here, not taken from the walk, and may not be found although
the verdict is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sar_agent.check.order import first_names
from sar_agent.check.table_sets import Pair, TableSets
from sar_agent.check.walk import CIRCLE, DROP, Planes
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8

if TYPE_CHECKING:  # loading it takes a sixth of a second, and only explanations need it
    import networkx as nx


def describe_credit_loop(sets: TableSets, pair: Pair, planes: Planes) -> str:
    """A credit loop in `planes`; each step names a destination whose packets can take it."""
    loop = sets.between_hosts(planes).cycle()
    cycle = [int(sets.fabric.channel_by_port[s, p]) for s, p, _ in loop]
    lanes = sorted({str(lane) for *_, lane in loop})
    lane = f"lanes {', '.join(lanes)}" if sets.wiring.by_hop else f"lane {lanes[0]}"
    if not sets.same_lanes:
        lane = "any lane (the lanes change, too)"
    steps = [
        f"{sets.fabric.channel_name(a)}{_towards(sets, pair, a, b)}"
        for a, b in pairwise([*cycle, cycle[0]])
    ]
    return f"a credit loop in {lane}: {first_names(steps)}, and back"


def describe_hazard(sets: TableSets, pair: Pair, outcome: U8) -> str:
    """What can happen to packets to the first destination at risk; empty where no destination is.

    `outcome` is uint8[O, D], `FINE`, `CIRCLE` or `DROP` for each tree.
    """
    for kind, harm in ((CIRCLE, "could circle"), (DROP, "could be lost")):
        if len(trees := np.argwhere(outcome == kind)):
            o, d = map(int, trees[0])
            path = _path(sets, pair, o, d, kind)
            rest = f", and {len(trees) - 1} more destinations" if len(trees) > 1 else ""
            return f"packets to {_name(sets.fabric, d)} {harm}: {path}{rest}"
    return ""


def describe_losses(sets: TableSets) -> str:
    """The destinations whose packets the old tables alone lose; empty where they lose none."""
    dead = np.argwhere(sets.dead(sets.old.egress, np.ones(sets.old.egress.shape[:2], np.bool_)))
    if not len(dead):
        return ""
    rest = f" and {len(dead) - 1} more destinations" if len(dead) > 1 else ""
    return f"packets to {_name(sets.fabric, int(dead[0][1]))}{rest} are lost now"


def _name(fabric: Fabric, d: int) -> str:
    if d < fabric.terminals:
        return f"{fabric.terminal_host[d]} (port {fabric.terminal_guid[d]:#x})"
    return f'switch "{fabric.switch_name[d - fabric.terminals]}"'


def _towards(sets: TableSets, pair: Pair, first: int, then: int) -> str:
    """A destination whose packets can hold channel `first` and wait for channel `then`."""
    fabric, ports = sets.fabric, int(sets.wiring.ports)
    s, w = int(fabric.channel_source[first]), int(fabric.channel_source[then])
    p, q = int(fabric.channel_port[first]), int(fabric.channel_port[then])
    at = (s * ports + p) * ports + q
    tables = [table for _, table in _ages(sets, pair)]
    holds = np.logical_or.reduce([table[..., s] == p for table in tables])
    waits = np.logical_or.reduce([table[..., w] == q for table in tables])
    hosts = np.arange(holds.shape[1]) < fabric.terminals
    for o, d in np.argwhere(holds & waits & hosts):
        planes = sets.planes()
        sets.mix(pair, sets.one_tree(o, d), planes)
        if planes[: len(planes) // 2, at].any():
            ages = [age for age, table in _ages(sets, pair) if table[o, d, s] == p]
            both = {"old", "new"} <= set(ages)
            return (
                f" (to {fabric.terminal_host[d]}, {'both entries' if both else ages[0] + ' entry'})"
            )
    return ""


def _ages(sets: TableSets, pair: Pair) -> list[tuple[str, U8]]:
    """The tables whose entries packets can meet, uint8[O, D, S] each, and their age in words; the
    old tables come first."""
    ages = [("old", pair[0].egress), ("new", pair[1].egress)]
    if sets.had is not None and pair[0] is sets.old:
        ages.append(("unconfirmed", sets.had))
    return ages + [("earlier", tables.egress) for tables in sets.also]


def _path(sets: TableSets, pair: Pair, o: int, d: int, kind: int) -> str:
    """The circle, or the path to the switch that loses packets, with the age of each entry."""
    import networkx as nx

    fabric, wiring = sets.fabric, sets.wiring
    graph: nx.DiGraph[int] = nx.DiGraph()
    onward: dict[int, int] = {}
    ends: set[int] = set()
    root = int(wiring.root[d])
    for age, table in reversed(_ages(sets, pair)):
        for s in range(fabric.switches):
            port = int(table[o, d, s])
            w = int(wiring.following[s, min(port, int(wiring.ports))])
            if w < fabric.switches:
                graph.add_edge(s, w, age=age)
                onward[s] = w  # the old entries come last
            elif age in ("old", "unconfirmed") and not (s == root and port == wiring.last[d]):
                ends.add(s)
                onward.pop(s, None)
    senders = np.flatnonzero(wiring.sends[wiring.destination_kind[d] - 1]).tolist()
    if kind == CIRCLE:
        for sender in senders:
            with suppress(nx.NetworkXNoCycle):
                if sender in graph:
                    return _arrows(fabric, graph, nx.find_cycle(graph, sender))
    for sender in senders:
        v = sender
        for _ in range(fabric.switches):
            v = onward.get(v, v)
        for end in sorted(ends - {v}) if v not in ends and sender in graph else ():
            if end in graph and nx.has_path(graph, sender, end):
                path: list[int] = nx.shortest_path(graph, sender, end)
                loss = f', where the old entry of "{fabric.switch_name[end]}" leads nowhere'
                return _arrows(fabric, graph, pairwise(path)) + loss
    return "on a path that could not be reconstructed"


def _arrows(fabric: Fabric, graph: nx.DiGraph[int], edges: Iterable[tuple[int, int]]) -> str:
    names = fabric.switch_name
    return ", ".join(
        f'"{names[a]}" -> "{names[b]}" ({graph.edges[a, b]["age"]} entry)' for a, b in edges
    )
