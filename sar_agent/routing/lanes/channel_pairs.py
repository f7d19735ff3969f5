"""Which channels follow each other on the paths of given tables, two and three at a time.

A switch sees the port by which a packet comes and the port by which it leaves: a *pair* of
channels. That is all that a lane chosen hop by hop can depend on. Which pairs follow each other is
known from the *triples* of channels that some packet takes one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, U64, Bool
from sar_agent.routing.graph.csr import ChannelGraph
from sar_agent.routing.graph.successors import ParentGraph, parent_of
from sar_agent.routing.graph.topological_order import kahn_order
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel, kernel_template

NOBODY, HOSTS, OTHERS = 0, 1, 2
UNUSED, CYCLE = -1, -2


class Triples(NamedTuple):
    """Bit sets over ports: bit q of word q // 64. C channels, P ports (0 … P - 1), W width.

    A pair (channel c, port q of the switch that c leads to) has the number c · P + q.
    """

    begins: U64
    """uint64[C, W]: packets that start at the switch of c leave c's far end by q."""
    follows: U64
    """uint64[C · P, W]: packets that passed the pair leave the next switch by q."""


class PairGraph(NamedTuple):
    """Pairs as nodes; an edge is a triple."""

    net: ChannelGraph
    follows: U64
    """uint64[C · P, W], as `Triples.follows`."""


@kernel_template
def has_bit(sets: U64, row: np.uint32, bit: np.uint32) -> bool:  # pragma: no cover
    """Whether the set in a row of `sets` uint64[·, W] holds the bit."""
    word = sets[row, bit >> np.uint32(6)]
    return bool(word >> np.uint64(bit & np.uint32(63)) & np.uint64(1))


@kernel_template
def set_bit(sets: U64, row: np.uint32, bit: np.uint32) -> None:  # pragma: no cover
    """Adds the bit to the set in a row of `sets` uint64[·, W]."""
    sets[row, bit >> np.uint32(6)] |= np.uint64(1) << np.uint64(bit & np.uint32(63))


@kernel_template
def pairs_after(graph: PairGraph, pair: np.uint32, into: U32) -> np.uint32:  # pragma: no cover
    """Successors in a `PairGraph`: pairs that packets pass after this one. O(P)."""
    ports = np.uint32(graph.net.channel.shape[1] - 1)
    c, q = np.uint32(pair // ports), np.uint32(pair % ports)
    first = graph.net.channel[graph.net.target[c], q] * ports
    count = np.uint32(0)
    for word in range(graph.follows.shape[1]):
        bits = graph.follows[pair, word]
        after = first + np.uint32(64 * word)
        while bits:
            if bits & np.uint64(1):
                into[count] = after
                count += np.uint32(1)
            bits >>= np.uint64(1)
            after += np.uint32(1)
    return count


@kernel_template
def pairs_before(graph: PairGraph, pair: np.uint32, into: U32) -> np.uint32:  # pragma: no cover
    """Predecessors in a `PairGraph`: pairs that packets pass before this one. O(P)."""
    net, ports = graph.net, np.uint32(graph.net.channel.shape[1] - 1)
    c, q = np.uint32(pair // ports), np.uint32(pair % ports)
    s, port = net.source[c], np.uint32(net.port[c])
    count = np.uint32(0)
    for out in range(net.offset[s], net.offset[s + np.uint32(1)]):
        before = net.reverse[out] * ports + port
        if has_bit(graph.follows, before, q):
            into[count] = before
            count += np.uint32(1)
    return count


@kernel
def pair_levels(net: ChannelGraph, triples: Triples) -> I32:  # pragma: no cover
    """int32[C · P]: the most pairs that packets can pass before each one; `UNUSED` for pairs that
    no packet takes, `CYCLE` for those on or behind a cycle. O(C P W), by Kahn's algorithm."""
    graph = PairGraph(net, triples.follows)
    pairs, ports = len(triples.follows), np.uint32(net.channel.shape[1] - 1)
    level = np.full(pairs, UNUSED, np.int32)
    into = np.empty(ports, np.uint32)
    for n in range(pairs):
        pair = np.uint32(n)
        after = pairs_after(graph, pair, into)
        if after or has_bit(triples.begins, pair // ports, pair % ports):
            level[pair] = CYCLE
        for k in range(after):
            level[into[k]] = CYCLE
    order, waiting = np.empty(pairs, np.uint32), np.empty(pairs, np.int32)
    size = kahn_order(graph, pairs_after, into, waiting, order)
    for pair in order[:size]:
        if level[pair] == CYCLE:  # nothing leads to it
            level[pair] = 0
        for k in range(pairs_after(graph, pair, into)):
            level[into[k]] = max(level[into[k]], level[pair] + 1)
    for n in range(pairs):
        if waiting[n] > 0:
            level[n] = CYCLE
    return level


class _PacketSources(NamedTuple):
    """Where packets to each destination start."""

    root: U32
    """uint32[D]: the last switch before each destination."""
    asks: U8
    """uint8[D]: `NOBODY`, `HOSTS` or `OTHERS`."""
    sends: Bool
    """bool[3, S]: switches at which packets to such destinations start."""


def triples_of(fabric: Fabric, net: ChannelGraph, routes: Routes, everyone: bool) -> Triples:
    """The triples on paths between hosts; with `everyone` also on those from and to the switches'
    own LIDs and aggregation units. O(offsets D S).

    Every destination must be reached (the check reports those that are not): other paths are cut
    short.
    """
    alive = fabric.switch_up
    asks = np.full(fabric.destinations, OTHERS if everyone else NOBODY, np.uint8)
    asks[: fabric.terminals][fabric.is_host_port] = HOSTS
    asks[: fabric.terminals][~fabric.terminal_up] = NOBODY
    asks[fabric.terminals :][~alive] = NOBODY
    sends = np.zeros((3, fabric.switches), np.bool_)
    sends[HOSTS, fabric.leaves] = True
    sends[OTHERS, fabric.terminal_switch[fabric.terminal_up]] = True
    if everyone:
        sends[HOSTS] |= sends[OTHERS]
    sources = _PacketSources(fabric.destination_switch.astype(np.uint32), asks, sends & alive)
    ports = net.channel.shape[1] - 1
    width = (ports + 63) // 64
    begins = np.zeros((fabric.channels, width), np.uint64)
    follows = np.zeros((fabric.channels * ports, width), np.uint64)
    for table in routes.egress:
        _collect(net, sources, table, begins, follows)
    return Triples(begins, follows)


@kernel
def _collect(
    net: ChannelGraph, sources: _PacketSources, egress: U8, begins: U64, follows: U64
) -> None:  # pragma: no cover
    """Adds the triples of one table, uint8[D, S]. Switches of a tree come in topological order, so
    that it is known whether packets pass a switch when its turn comes."""
    destinations, switches = egress.shape
    channels, ports = np.uint32(len(net.target)), np.uint32(net.channel.shape[1] - 1)
    hop = np.empty(switches, np.uint32)
    tree = ParentGraph(np.empty(switches, np.int32))
    waiting, order = np.empty(switches, np.int32), np.empty(switches, np.uint32)
    into = np.empty(1, np.uint32)
    passed = np.empty(switches, np.bool_)
    for d in range(destinations):
        kind = sources.asks[d]
        if kind == NOBODY:
            continue
        row, root = egress[d], sources.root[d]
        for n in range(switches):
            s = np.uint32(n)
            hop[s] = net.channel[s, row[s] if row[s] < ports and s != root else ports]
            tree.parent[s] = net.target[hop[s]] if hop[s] < channels else -1
        passed[:] = sources.sends[kind]
        for v in order[: kahn_order(tree, parent_of, into, waiting, order)]:
            c = hop[v]
            if c >= channels or not passed[v]:
                continue
            w = net.target[c]
            passed[w] = True
            if hop[w] >= channels:
                continue
            q = np.uint32(row[w])
            if sources.sends[kind, v]:
                set_bit(begins, c, q)
            x = net.target[hop[w]]
            if hop[x] < channels:
                set_bit(follows, c * ports + q, np.uint32(row[x]))
