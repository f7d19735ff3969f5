"""Which channels follow each other on the paths of given tables, two and three at a time.

A switch sees the port a packet comes by and the port it leaves by: a *pair* of channels, and all
that a lane chosen hop by hop can depend on. Which pairs can follow each other is said by the
*triples* of channels that some packet takes one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U64, Bool
from sar_agent.routing.routes import Routes

NOBODY, HOSTS, OTHERS = 0, 1, 2


class Triples(NamedTuple):
    """Bit sets over ports: bit q of word q // 64. C channels, P ports (0 … P - 1), W words.

    A pair (channel c, port q of the switch that c leads to) has the number c · P + q.
    """

    begins: U64
    """uint64[C, W]: packets that start at the switch of c leave c's far end by q."""
    follows: U64
    """uint64[C · P, W]: packets that passed the pair leave the next switch by q."""


class _Walk(NamedTuple):
    channel: I32
    """int32[S, P]: live channel behind a port, -1 where there is none."""
    target: I32
    root: I32
    asks: U8
    """uint8[D]: `NOBODY`, `HOSTS` or `OTHERS`."""
    sends: Bool
    """bool[3, S]: switches at which packets to such destinations start."""


def triples_of(fabric: Fabric, routes: Routes, everyone: bool) -> Triples:
    """Between hosts, or with what goes to the switches' own LIDs and aggregation units, too.

    Every destination must be reached (the check says so); others' paths are cut short.
    """
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    up, alive = fabric.channel_up, fabric.switch_up
    channel = np.where(up[fabric.channel_by_port], fabric.channel_by_port, -1)[:, :ports]
    asks = np.full(fabric.destinations, OTHERS if everyone else NOBODY, np.uint8)
    asks[: fabric.terminals][fabric.is_host_port] = HOSTS
    asks[: fabric.terminals][~fabric.terminal_up] = NOBODY
    asks[fabric.terminals :][~alive] = NOBODY
    sends = np.zeros((3, fabric.switches), np.bool_)
    sends[HOSTS, fabric.leaves] = True
    sends[OTHERS, fabric.terminal_switch[fabric.terminal_up]] = True
    if everyone:
        sends[HOSTS] |= sends[OTHERS]
    walk = _Walk(
        np.ascontiguousarray(channel, np.int32),
        fabric.channel_target,
        fabric.destination_switch,
        asks,
        sends & alive,
    )
    words = (ports + 63) // 64
    begins = np.zeros((fabric.channels, words), np.uint64)
    follows = np.zeros((fabric.channels * ports, words), np.uint64)
    for table in routes.egress:
        _collect(walk, table, begins, follows)
    return Triples(begins, follows)


@njit(cache=True)
def _collect(walk: _Walk, egress: U8, begins: U64, follows: U64) -> None:  # pragma: no cover
    """Peels each tree from its far ends, so that who passes a switch is known when it is taken."""
    destinations, switches = egress.shape
    ports, one = np.uint32(walk.channel.shape[1]), np.uint32(1)
    hop = np.empty(switches, np.int32)
    degree = np.empty(switches, np.int32)
    queue = np.empty(switches, np.uint32)
    passed = np.empty(switches, np.bool_)
    for d in range(destinations):
        kind = walk.asks[d]
        if kind == NOBODY:
            continue
        row, root = egress[d], np.uint32(walk.root[d])
        degree[:] = 0
        for s in range(switches):
            hop[s] = -1
            if s != root and row[s] < ports:
                hop[s] = walk.channel[s, row[s]]
                if hop[s] >= 0:
                    degree[np.uint32(walk.target[np.uint32(hop[s])])] += 1
        passed[:] = walk.sends[kind]
        taken = np.uint32(0)
        for s in range(switches):
            if degree[s] == 0:
                queue[taken] = s
                taken += one
        i = np.uint32(0)
        while i < taken:
            v = queue[i]
            i += one
            if hop[v] < 0:
                continue
            c = np.uint32(hop[v])
            w = np.uint32(walk.target[c])
            degree[w] -= 1
            if degree[w] == 0:
                queue[taken] = w
                taken += one
            if not passed[v]:
                continue
            passed[w] = True
            if hop[w] < 0:
                continue
            q = np.uint32(row[w])
            if walk.sends[kind, v]:
                begins[c, q >> np.uint32(6)] |= np.uint64(1) << np.uint64(q & np.uint32(63))
            x = np.uint32(walk.target[np.uint32(hop[w])])
            if hop[x] >= 0:
                then = np.uint32(row[x])
                bit = np.uint64(1) << np.uint64(then & np.uint32(63))
                follows[c * ports + q, then >> np.uint32(6)] |= bit
