"""An adaptive peer, *Conga-like*: flowlets choose their way by what they know of the links.

After CONGA (Alizadeh et al., SIGCOMM 2014), which routing-keys-2017 took from two levels to three.
What is like it: a message is sent in flowlets; before each, the sender's leaf switch takes the way
whose worst link has the lowest load, in a few levels of load. It knows its own uplinks as they are,
and all other links by feedback, an average over an interval that lies in the past. The way stays
where no other is strictly better; ties are broken by chance. What is not: the load of all links of
a way comes in one feedback, where Conga folds it hop by hop; a flowlet ends after so many bytes,
where Conga waits for a gap, which a sender at full speed does not have; nothing is ever reordered.

Only on XGFTs: one way over each root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.lab.fluid.events import (
    FINISHED,
    PAUSED,
    WAITS,
    Progress,
    add_carried,
    advance,
    freed,
    progress_of,
)
from sar_agent.lab.fluid.flows import Flows
from sar_agent.lab.fluid.links import F64, Links, end_flow, start_flow
from sar_agent.lab.fluid.paths import routed_links, tables_for
from sar_agent.routing.dag import U32
from sar_agent.routing.dependencies import Tables
from sar_agent.routing.oblivious_tables import nca_tables
from sar_agent.routing.routes import Routes

U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Adaptive:
    """Its parameters."""

    flowlet: float = 64 * 2**10
    """Bytes after which a message may take another way."""
    feedback: float = 20e-6
    """Seconds: what is known of links far away is their mean load in the last whole interval."""
    levels: int = 8
    """Into so many levels a link's load, 0 … 1, is told apart (Conga: 3 bits)."""
    seed: int = 0


def play_adaptive(fabric: Fabric, flows: Flows, adaptive: Adaptive) -> Progress:
    """Runs all flows to their end. Raises `Unserved` where the fabric is no XGFT."""
    if adaptive.flowlet <= 0 or adaptive.feedback <= 0 or adaptive.levels < 1:
        raise InputError("adaptive routing needs a flowlet, an interval and levels above 0")
    tables = nca_tables(fabric, recognise_xgft(fabric))
    # All ways of a pair are as long as this one; which it is, is chosen when the flow starts.
    links = routed_links(fabric, Routes("adaptive", fabric.digest, tables[:1]), flows)
    progress = progress_of(links, flows)
    progress.asks[:] = True
    _play(
        links,
        flows,
        progress,
        tables_for(fabric, tables[0]),
        np.ascontiguousarray(tables[:, : fabric.terminals]),
        fabric.terminal_switch.astype(np.uint32),
        adaptive.flowlet * 8e-9,
        adaptive.feedback,
        adaptive.levels,
        np.array([adaptive.seed * 2 + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15),
    )
    return progress


@njit(cache=True)
def _play(
    links: Links,
    flows: Flows,
    progress: Progress,
    tables: Tables,
    over: U8,
    leaf: U32,
    flowlet: float,
    feedback: float,
    levels: int,
    chance: U64,
) -> None:  # pragma: no cover
    """`over` uint8[R, T, S]: the tables that lead over each root."""
    seen, before = np.zeros(len(links.capacity)), np.zeros(len(links.capacity))
    way = np.full(len(flows.size), over.shape[0], np.uint32)
    all_flows = np.arange(len(way)).astype(np.uint32)
    until = feedback
    while True:
        what, number = advance(links, flows, progress, until)
        if what == FINISHED:
            return
        if what == WAITS:
            if until == np.inf:
                until = (np.floor(progress.now[0] / feedback) + 1) * feedback
            for i in range(progress.first[number], progress.first[number + 1]):
                f = all_flows[i]
                way[f] = _best(links, tables, over, leaf, flows, f, way[f], seen, levels, chance)
                _lead(links, tables, over[way[f]], leaf, flows, f)
                progress.pause[f] = flows.size[f] - flowlet
            progress.asks[number] = False
        elif what == PAUSED:
            for i in range(number):
                f = progress.ended[i]
                progress.pause[f] -= flowlet
                best = _best(links, tables, over, leaf, flows, f, way[f], seen, levels, chance)
                if best != way[f]:
                    way[f] = best
                    add_carried(links, progress, f, progress.to_go[f])
                    end_flow(links, f)
                    progress.counts[2] = freed(links, f, progress.moving, progress.counts[2])
                    _lead(links, tables, over[best], leaf, flows, f)
                    start_flow(links, f)
                    if not links.moves[f]:
                        links.moves[f] = True
                        progress.moving[progress.counts[2]] = f
                        progress.counts[2] += np.uint32(1)
        else:
            for f in progress.running[: progress.counts[0]]:
                add_carried(links, progress, f, progress.to_go[f])
            quiet = True
            for c in range(len(seen)):
                seen[c] = (progress.carried[c] - before[c]) / (feedback * links.capacity[c])
                before[c] = progress.carried[c]
                quiet &= seen[c] == 0
            until = np.inf if quiet and not progress.counts[0] else until + feedback


@njit(cache=True)
def _best(
    links: Links,
    tables: Tables,
    over: U8,
    leaf: U32,
    flows: Flows,
    f: np.uint32,
    now: np.uint32,
    seen: F64,
    levels: int,
    chance: U64,
) -> np.uint32:  # pragma: no cover
    """The root whose way has the lowest level; `now` if it is one of these, else one by chance."""
    s, d = flows.source[f], flows.destination[f]
    start, goal = leaf[s], tables.root[d]
    least, ties, best = levels, 0, now
    for r in range(over.shape[0]):
        v, worst = start, 0
        while v != goal:
            c = tables.channel_by_port[v, over[r, d, v]]
            load = seen[c]
            if v == start:
                load = 0.0
                e = links.first[c]
                while e < len(links.link):
                    load += links.rate[links.flow[e]]
                    e = links.next[e]
                load /= links.capacity[c]
            worst = max(worst, min(levels - 1, int(load * levels)))
            v = tables.target[c]
        if worst < least:
            least, ties = worst, 0
        if worst == least:
            ties += 1
            chance[0] ^= chance[0] << np.uint64(13)
            chance[0] ^= chance[0] >> np.uint64(7)
            chance[0] ^= chance[0] << np.uint64(17)
            if r == now:
                ties = 1 << 40  # nobody after it is drawn
                best = now
            elif (chance[0] >> np.uint64(20)) % np.uint64(ties) == 0:
                best = np.uint32(r)
    return best


@njit(cache=True)
def _lead(
    links: Links, tables: Tables, egress: U8, leaf: U32, flows: Flows, f: np.uint32
) -> None:  # pragma: no cover
    """Writes the channels of the way over one root between the two hosts' own links."""
    d = flows.destination[f]
    v = leaf[flows.source[f]]
    for i in range(links.path[f] + np.uint32(1), links.stop[f] - np.uint32(1)):
        links.link[i] = tables.channel_by_port[v, egress[d, v]]
        v = tables.target[links.link[i]]
