"""Adaptive routing for comparison, *Conga-like*: flowlets choose paths by known link loads.

The model is CONGA (Alizadeh et al., SIGCOMM 2014), which routing-keys-2017 extended from two levels
to three. As in CONGA, a message is sent in flowlets. Before each flowlet, the sender's leaf switch
takes the path whose worst link has the lowest load, quantised to a few levels. It knows the present
load of its own uplinks, and of all other links the mean over a past interval (feedback). The path
stays unless another one is strictly better; ties are broken at random. Unlike in CONGA, one
feedback brings the loads of all links of a path, where CONGA combines them hop by hop; a flowlet
ends after a number of bytes, where CONGA waits for a gap, which a sender at full speed does not
have; and packets are never reordered.

It works on XGFTs only, which have one path over each root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.routing.dmodk import digit_tables
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel, kernel_part
from sar_lab.fluid.flow_events import (
    FINISHED,
    PAUSED,
    WAITS,
    FlowProgress,
    add_carried,
    advance,
    freed,
    progress_of,
)
from sar_lab.fluid.flow_links import F64, FlowLinks, end_flow, start_flow
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows

U64 = NDArray[np.uint64]


class XgftTables(NamedTuple):
    """An XGFT for the kernels, with names as in `XgftView`. It has a few kilobytes; a table for
    each root would not fit into a cache."""

    level: U8
    subtree: I32
    inside: I32
    digit: I32
    up: U32
    """uint32[S, ·]: channel to the parent with W = j."""
    down: U32
    """uint32[S, ·]: channel to child j."""
    parents: I32
    """int32[h]"""
    target: U32
    """uint32[C]"""
    leaf: U32
    """uint32[T]"""


def xgft_tables(fabric: Fabric) -> XgftTables:
    """Raises `Unserved` where the fabric is no XGFT."""
    view = recognise_xgft(fabric)
    switch = np.arange(fabric.switches)[:, None]
    return XgftTables(
        view.level,
        view.subtree,
        view.inside,
        view.digit,
        fabric.channel_by_port[switch, view.up].astype(np.uint32),
        fabric.channel_by_port[switch, view.down].astype(np.uint32),
        np.array(view.w, np.int32),
        fabric.channel_target.astype(np.uint32),
        fabric.terminal_switch.astype(np.uint32),
    )


@dataclass(frozen=True)
class AdaptiveRouting:
    """The parameters of adaptive routing."""

    flowlet: float = 64 * 2**10
    """Bytes after which a message may take another path."""
    feedback: float = 20e-6
    """Seconds: the known load of a remote link is its mean load in the last whole interval."""
    levels: int = 8
    """The number of levels to which a link's load, 0 … 1, is quantised (CONGA: 3 bits)."""
    seed: int = 0


def play_adaptive(fabric: Fabric, flows: Flows, adaptive: AdaptiveRouting) -> FlowProgress:
    """Runs all flows to their end. Raises `Unserved` where the fabric is no XGFT."""
    if adaptive.flowlet <= 0 or adaptive.feedback <= 0 or adaptive.levels < 1:
        raise InputError("adaptive routing needs a flowlet, an interval and levels above 0")
    tree = xgft_tables(fabric)
    # All paths of a pair are as long as this one; the actual path is chosen when the flow starts.
    digits = np.zeros((fabric.terminals, len(tree.parents) - 1), np.uint8)
    egress = digit_tables(fabric, recognise_xgft(fabric), digits)
    links = routed_links(fabric, Routes("adaptive", fabric.digest, egress[None]), flows)
    progress = progress_of(links, flows)
    progress.asks[:] = True
    _play(
        links,
        flows,
        progress,
        tree,
        adaptive.flowlet * 8e-9,
        adaptive.feedback,
        adaptive.levels,
        np.array([adaptive.seed * 2 + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15),
    )
    return progress


@kernel
def _play(
    links: FlowLinks,
    flows: Flows,
    progress: FlowProgress,
    tree: XgftTables,
    flowlet: float,
    feedback: float,
    levels: int,
    chance: U64,
) -> None:  # pragma: no cover
    seen, before = np.zeros(len(links.capacity)), np.zeros(len(links.capacity))
    own = np.empty(tree.up.shape[1])
    root = np.full(len(flows.size), 1 << 31, np.uint32)
    everyone = np.arange(len(root)).astype(np.uint32)
    until = feedback
    while True:
        what, number = advance(links, flows, progress, until)
        if what == FINISHED:
            return
        if what == WAITS:
            if until == np.inf:
                until = (np.floor(progress.now[0] / feedback) + 1) * feedback
            for i in range(progress.first[number], progress.first[number + 1]):
                f = everyone[i]
                root[f] = _best(links, tree, flows, f, root[f], seen, own, levels, chance)
                _lead(links, tree, flows, f, root[f])
                progress.pause[f] = flows.size[f] - flowlet
            progress.asks[number] = False
        elif what == PAUSED:
            for f in progress.ended[:number]:
                progress.pause[f] -= flowlet
                best = _best(links, tree, flows, f, root[f], seen, own, levels, chance)
                if best != root[f]:
                    root[f] = best
                    _move(links, tree, flows, progress, f, best)
        else:
            for f in progress.running[: progress.counts[0]]:
                add_carried(links, progress, f, progress.to_go[f])
            quiet = True
            for c in range(len(seen)):
                seen[c] = (progress.carried[c] - before[c]) / (feedback * links.capacity[c])
                before[c] = progress.carried[c]
                quiet &= seen[c] == 0
            until = np.inf if quiet and not progress.counts[0] else until + feedback


@kernel_part
def _move(
    links: FlowLinks,
    tree: XgftTables,
    flows: Flows,
    progress: FlowProgress,
    f: np.uint32,
    root: np.uint32,
) -> None:  # pragma: no cover
    """Moves a running flow to the path over another root."""
    counts = progress.counts
    add_carried(links, progress, f, progress.to_go[f])
    end_flow(links, f)
    counts[2] = freed(links, f, progress.moving, counts[2])
    _lead(links, tree, flows, f, root)
    start_flow(links, f)
    if not links.moves[f]:
        links.moves[f] = True
        progress.moving[counts[2]] = f
        counts[2] += np.uint32(1)


@kernel_part
def _best(
    links: FlowLinks,
    tree: XgftTables,
    flows: Flows,
    f: np.uint32,
    now: np.uint32,
    seen: F64,
    own: F64,
    levels: int,
    chance: U64,
) -> np.uint32:  # pragma: no cover
    """The root whose path has the lowest load level: `now` if it is among the best, else a random
    one of them. `own` is scratch, one entry for each uplink of a leaf."""
    d = flows.destination[f]
    start, goal = tree.leaf[flows.source[f]], tree.leaf[d]
    roots, top = 1, 1
    while tree.inside[top, start] != tree.inside[top, goal]:
        roots *= tree.parents[top]
        top += 1
    if top == 1:
        return now
    for w in range(tree.parents[1]):
        c = tree.up[start, w]
        own[w] = 0.0
        e = links.first[c]
        while e < len(links.link):
            own[w] += links.rate[links.flow[e]]
            e = links.next[e]
        own[w] /= links.capacity[c]
    least, ties, best = levels, 0, now
    for r in range(roots):
        worst = min(levels - 1, int(own[r % tree.parents[1]] * levels))
        v = tree.target[tree.up[start, r % tree.parents[1]]]
        rest = r // tree.parents[1]
        while v != goal and worst <= least:
            c, rest = _onward(tree, v, goal, d, rest)
            worst = max(worst, min(levels - 1, int(seen[c] * levels)))
            v = tree.target[c]
        if worst > least:
            continue
        if worst < least:
            least, ties = worst, 0
        ties += 1
        chance[0] ^= chance[0] << np.uint64(13)
        chance[0] ^= chance[0] >> np.uint64(7)
        chance[0] ^= chance[0] << np.uint64(17)
        if r == now:
            ties = 1 << 40  # no later root is drawn
            best = now
        elif (chance[0] >> np.uint64(20)) % np.uint64(ties) == 0:
            best = np.uint32(r)
    return best


@kernel_part
def _onward(
    tree: XgftTables, v: np.uint32, goal: np.uint32, d: np.uint32, rest: np.int64
) -> tuple[np.uint32, np.int64]:  # pragma: no cover
    """The channel from v towards terminal d under `goal`, and the parents that are left to choose
    (`rest`, least significant first)."""
    at = tree.level[v]
    if tree.inside[at, goal] != tree.subtree[v]:
        return tree.up[v, rest % tree.parents[at]], rest // tree.parents[at]
    return tree.down[v, tree.digit[d, at - np.uint8(1)]], rest


@kernel_part
def _lead(
    links: FlowLinks, tree: XgftTables, flows: Flows, f: np.uint32, root: np.uint32
) -> None:  # pragma: no cover
    """Writes the channels of the path over this root between the links of the two hosts."""
    d = flows.destination[f]
    v, goal = tree.leaf[flows.source[f]], tree.leaf[d]
    rest = np.int64(root)
    for i in range(links.path[f] + np.uint32(1), links.stop[f] - np.uint32(1)):
        c, rest = _onward(tree, v, goal, d, rest)
        links.link[i] = c
        v = tree.target[c]
