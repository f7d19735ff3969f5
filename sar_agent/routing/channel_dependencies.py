"""Channel dependencies: which channel a packet may wait for while it holds another.

The channel dependency graph of Dally and Seitz (IEEE Trans. Computers C-36(5), 1987), as a bitmap.
Channel c2 always leaves the switch that c1 enters, so a dependency is (c1, rank of c2 among that
switch's channels): C times the largest number of channels of a switch, whatever the number of
paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.routing.graph.csr import channel_graph_of
from sar_agent.routing.graph.topological_order import dependency_order
from sar_agent.util.kernels import kernel


class OffsetTables(NamedTuple):
    """One LID offset's tables, and the arrays by which kernels follow them."""

    egress: U8
    """uint8[D, S]"""
    level: U8
    """uint8[D, S] service levels, or uint8[0, 0] where one lane carries all."""
    channel_by_port: U32
    """uint32[S, 256]"""
    target: U32
    """uint32[C]"""
    offset: U32
    """uint32[S + 1]"""
    root: U32
    """uint32[D]: the last switch before each destination."""
    sends: Bool
    """bool[S]: switches at which paths begin."""
    rows: U32
    """uint32[·]: the destinations whose paths count."""


def offset_tables_of(
    fabric: Fabric, egress: U8, level: U8 | None, sends: Bool, wanted: Bool
) -> OffsetTables:
    """One LID offset's tables; `wanted` bool[D] says which destinations' paths count."""
    return OffsetTables(
        egress,
        np.zeros((0, 0), np.uint8) if level is None else level,
        fabric.channel_by_port.astype(np.uint32),
        fabric.channel_target.astype(np.uint32),
        fabric.channel_offset.astype(np.uint32),
        fabric.destination_switch.astype(np.uint32),
        sends,
        np.flatnonzero(wanted).astype(np.uint32),
    )


def empty_dependencies(fabric: Fabric, lanes: int) -> U8:
    """A bitmap without dependencies: uint8[lanes, C, W], W the most channels that leave a
    switch."""
    degree = int(np.diff(fabric.channel_offset).max(initial=1))
    return np.zeros((lanes, fabric.channels, degree), np.uint8)


@kernel
def collect_dependencies(tables: OffsetTables, depends: U8) -> None:  # pragma: no cover
    """Sets `depends[lane, c1, rank of c2]` to 1 for every path of a sending switch.

    `depends` is uint8[lanes, C, W]. A path ends where it has no channel. O(D S) with one lane, else
    O(D S · hops).
    """
    switches = tables.egress.shape[1]
    channels = len(tables.target)
    lanes = tables.level.shape[0] > 0
    passed = np.empty(switches, np.bool_)
    for d in tables.rows:
        table, root = tables.egress[d], tables.root[d]
        passed[:] = False
        for s in range(switches):
            if not tables.sends[s]:
                continue
            lane = tables.level[d, s] if lanes else 0
            v, hops = np.uint32(s), 0
            # With one lane, all paths through a switch share the rest of the way.
            while v != root and not passed[v] and hops < switches:
                hops += 1
                passed[v] = not lanes
                c1 = tables.channel_by_port[v, table[v]]
                if c1 >= channels:
                    break
                v = tables.target[c1]
                if v != root:
                    c2 = tables.channel_by_port[v, table[v]]
                    if c2 < channels:
                        depends[lane, c1, c2 - tables.offset[v]] = 1


def host_dependencies(fabric: Fabric, egress: U8) -> U8:
    """uint8[C, W]: those of the hosts' routes in `egress` uint8[T + S, S], all in one lane."""
    rows = np.zeros(fabric.destinations, np.bool_)
    rows[: fabric.terminals] = fabric.is_host_port
    depends = empty_dependencies(fabric, 1)
    tables = offset_tables_of(fabric, egress, None, fabric.terminals_at > 0, rows)
    collect_dependencies(tables, depends)
    only: U8 = depends[0]
    return only


def close_no_loop(fabric: Fabric, depends: U8) -> bool:
    """Whether these dependencies, uint8[C, W], close no cycle. O(C W)."""
    return len(dependency_order(channel_graph_of(fabric), depends)) == fabric.channels
