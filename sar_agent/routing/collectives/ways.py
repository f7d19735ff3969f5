"""The paths among which moves choose, and those that items take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32
from sar_agent.routing.collectives.phase_demand import PhaseDemand
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, dag_row
from sar_agent.util.kernels import kernel

NO_CHANNEL = -1


class Ways(NamedTuple):
    """The channels that lead closer to each leaf switch."""

    root: U32
    """uint32[T]: the last switch before each terminal."""
    by_port: U32
    """uint32[S, 256]: the channel behind a port; C or more where there is none."""
    source: U32
    """uint32[C]"""
    target: U32
    """uint32[C]"""
    port: U8
    """uint8[C]"""
    row: U32
    """uint32[S]: by leaf switch the row of what follows, that of `DagCache`."""
    place: I32
    """int32[rows, S]: the place of a switch in the row, -1 where no way leads from it."""
    start: U32
    edge: U32


def ways_of(fabric: Fabric, graph: Graph, cache: DagCache) -> Ways | None:
    """None where the fabric is so large that the cache does not hold all ways (above some 65,536
    hosts)."""
    if len(cache.tag) <= len(fabric.leaves):
        return None
    place = np.full((len(cache.tag), fabric.switches), -1, np.int32)
    _fill(graph, cache, fabric.leaves.astype(np.uint32), place)
    return Ways(
        fabric.terminal_switch.astype(np.uint32),
        fabric.channel_by_port.astype(np.uint32),
        fabric.channel_source.astype(np.uint32),
        graph.target,
        graph.port,
        cache.slot,
        place,
        cache.start,
        cache.edge,
    )


@kernel
def _fill(graph: Graph, cache: DagCache, leaves: U32, place: I32) -> None:  # pragma: no cover
    for leaf in leaves:
        row = dag_row(graph, cache, leaf)
        for i in range(cache.size[row]):
            place[row, cache.order[row, i]] = i


def paths_of(fabric: Fabric, demand: PhaseDemand, egress: U8) -> I32:
    """int32[I, hops]: the channels that each item crosses, then -1; -1 alone where it does not
    arrive."""
    channel_by_port, target = fabric.channel_by_port, fabric.channel_target
    at = demand.leaf.astype(np.int64)
    root = fabric.terminal_switch[demand.destination]
    crossed: list[I32] = []
    away = np.arange(len(at))
    while len(away) and len(crossed) < fabric.switches:
        here = at[away]
        channel = channel_by_port[here, egress[demand.destination[away], here]]
        away, channel = away[channel >= 0], channel[channel >= 0]
        at[away] = target[channel]
        crossed.append(np.full(len(at), NO_CHANNEL, np.int32))
        crossed[-1][away] = channel
        away = away[at[away] != root[away]]
    none = np.full((len(at), 1), NO_CHANNEL, np.int32)
    path = np.ascontiguousarray(np.array(crossed, np.int32).T) if crossed else none
    path[at != root] = NO_CHANNEL
    return path
