"""Every mixture of old and new tables, one by one: what `check/walk.py` sees at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import networkx as nx
import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.routing import Routes

LOST, ROUND = "lost", "round"


def enumerated(
    fabric: Fabric,
    before: Routes,
    after: Routes,
    had: np.ndarray | None = None,
    also: tuple[Routes, ...] = (),
    levels: np.ndarray | None = None,
) -> str:
    """What the first mixture that does harm does: `round`, `lost`, `loop`; empty where none does.

    A mixture gives each switch its old or its new tables, or those of `also`; the old ones are, of
    each switch by itself, those of `before` or of `had`. Of one destination at a time all are
    made, and all its packets sent; the channels that these hold and ask for make the graph of a
    lane (or, lanes hop by hop, of channel and lane), over all mixtures, as packets of one may still
    be there in another.
    """
    lanes = nx.DiGraph()
    harm = set()
    for o, d in np.ndindex(*after.egress.shape[:2]):
        asked = fabric.destination_switch[d]
        host = d < fabric.terminals
        if not (fabric.terminal_up[d] if host else fabric.switch_up[asked]):
            continue
        counts = host and bool(fabric.is_host_port[d])
        senders = np.flatnonzero(_sends(fabric))
        old = [before.egress[o, d], (before.egress if had is None else had)[o, d]]
        new, ways = after.egress[o, d], _Ways(fabric, int(d), senders.tolist())
        for truth in _choices(old):
            whole = {s for s, (_, end) in ways.by(truth).items() if end == ""}
            for row in _choices([truth, new]):
                ends = {s: end for s, (_, end) in ways.by(row).items()}
                harm |= {e for s, e in ends.items() if e == ROUND or (e == LOST and s in whole)}
        taken = set()
        for row in _choices([*old, new, *(routes.egress[o, d] for routes in also)]):
            for s, (way, end) in ways.by(row).items():
                harm |= {end} & {ROUND}
                taken.add((s, *way))
        for s, *way in taken if counts else ():
            if fabric.terminals_at[s] == 0:
                continue
            for routes in (before, after, *also):
                lanes.add_edges_from(_dependencies(fabric, routes, o, d, s, way))
            for level in range(0 if levels is None else 16):
                if levels is not None and levels[o, d, s] >> level & 1:
                    lane = level % after.virtual_lanes
                    lanes.add_edges_from(pairwise((c, lane) for c in way))
    for worst in (ROUND, LOST):
        if worst in harm:
            return worst
    return "" if nx.is_directed_acyclic_graph(lanes) else "loop"


class _Ways:
    """Where packets to one destination go, by its entries."""

    def __init__(self, fabric: Fabric, d: int, senders: list[int]) -> None:
        self._fabric, self._d, self._senders = fabric, d, senders
        self._known: dict[bytes, dict[int, tuple[list[int], str]]] = {}

    def by(self, row: np.ndarray) -> dict[int, tuple[list[int], str]]:
        """Of each sender: the channels, and how the way ends."""
        if (key := row.tobytes()) not in self._known:
            found = {s: _way(self._fabric, row, self._d, s) for s in self._senders}
            self._known[key] = found
        return self._known[key]


def _choices(rows: list[np.ndarray]) -> Iterator[np.ndarray]:
    """All rows of which each entry is that of one of `rows`."""
    entries = [sorted({int(row[s]) for row in rows}) for s in range(len(rows[0]))]
    for row in product(*entries):
        yield np.array(row, np.uint8)


def loses(fabric: Fabric, routes: Routes) -> bool:
    """Whether any packets do not arrive."""
    return any(
        _way(fabric, routes.egress[0, d], d, s)[1]
        for d in range(fabric.destinations)
        for s in np.flatnonzero(_sends(fabric))
    )


def _way(fabric: Fabric, row: np.ndarray, d: int, s: int) -> tuple[list[int], str]:
    """The channels from switch s on, and how the way ends: at the destination (empty), or not."""
    way: list[int] = []
    v, root = s, fabric.destination_switch[d]
    for _ in range(fabric.switches + 1):
        if v == root and row[v] == fabric.destination_port[d]:
            return way, ""
        c = int(fabric.channel_by_port[v, row[v]])
        if c < 0 or not fabric.channel_up[c] or not fabric.switch_up[fabric.channel_target[c]]:
            return way, LOST
        way.append(c)
        v = int(fabric.channel_target[c])
    return way, ROUND


def _sends(fabric: Fabric) -> np.ndarray:
    """bool[S]: live switches at which packets begin, those of aggregation units, too."""
    found = np.zeros(fabric.switches, np.bool_)
    found[fabric.terminal_switch[fabric.terminal_up]] = True
    return found & fabric.switch_up


def _dependencies(
    fabric: Fabric, routes: Routes, o: int, d: int, s: int, way: list[int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of (channel, lane) that a packet of s holds and asks for."""
    if routes.hop_lane is None:
        level = 0 if routes.service_level is None else int(routes.service_level[o, d, s])
        return list(pairwise((c, level % routes.virtual_lanes) for c in way))
    found = []
    hosts = (fabric.terminal_switch == s) & fabric.is_host_port & fabric.terminal_up
    for t in np.flatnonzero(hosts):
        entry, steps = int(fabric.terminal_switch_port[t]), []
        for c in way:
            port = int(fabric.channel_port[c])
            steps.append((c, int(routes.hop_lane[fabric.channel_source[c], entry, port])))
            entry = int(fabric.channel_port[fabric.channel_reverse[c]])
        found += pairwise(steps)
    return found
