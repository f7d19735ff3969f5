"""Numbers the channels of a routes file, for tests of the plugin: a topological order of the
channel dependencies, in which channels that climb come first. Written apart from the product."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.formats.routes_file import DROPPED, NO_SWITCH, RoutesFile

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


def numbered(file: RoutesFile) -> RoutesFile | None:
    """The file with numbers and loads; None if the dependencies of its paths close a cycle. Its
    GUIDs must be ascending."""
    switches, wide = file.far_ends.shape
    depends = np.zeros((file.lanes, switches * wide, wide), np.uint8)
    amount = np.zeros(switches * wide, np.int64)
    _follow(*_arrays(file), *_senders(file), depends, amount)
    order = _order(file, depends)
    if order is None:
        return None
    loads = (amount * 65536 // max(1, int(amount.max()))).astype(np.uint32)
    return replace(
        file,
        numbers=order.reshape(file.lanes, switches, wide),
        loads=loads.reshape(switches, wide),
    )


def sends(file: RoutesFile) -> U8:
    """uint8[S]: switches at which hosts are, or may be."""
    found = file.senders.copy()
    found[file.terminal_leaf] = 1
    return found


def lane_table(file: RoutesFile) -> U8:
    """uint8[O, S, D]: the lane in which hosts at a switch send, by path; 255: dropped."""
    if file.service_levels is None or file.sl_to_vl is None:
        return np.zeros_like(file.forwarding)
    lane = file.sl_to_vl[file.service_levels]
    return np.where(lane == DROPPED, 255, lane).astype(np.uint8)


def begin_lanes(file: RoutesFile) -> U32:
    """uint32[S, P + 1], hop by hop: the lanes in which packets of hosts leave by each port."""
    switches, wide = file.far_ends.shape
    begin = np.zeros((switches, wide), np.uint32)
    if file.hop_lanes is None:
        return begin
    ports = {
        (int(leaf), int(file.forwarding[o, leaf, t]))
        for t, leaf in enumerate(file.terminal_leaf)
        for o in range(len(file.forwarding))
    }
    for s in np.flatnonzero(file.senders):
        highest = int(file.switch_ports[s])
        ports |= {(int(s), p) for p in range(1, highest + 1) if file.far_ends[s, p] == NO_SWITCH}
    for leaf, entry in ports:
        begin[leaf] |= np.uint32(1) << file.hop_lanes[leaf, entry].astype(np.uint32)
    return begin


def _arrays(file: RoutesFile) -> tuple[U8, U32, U8, U32, U8]:
    hops = np.zeros((0, 0, 0), np.uint8) if file.hop_lanes is None else file.hop_lanes
    return (
        np.ascontiguousarray(file.forwarding), np.ascontiguousarray(file.far_ends),
        lane_table(file), begin_lanes(file), np.ascontiguousarray(hops),
    )  # fmt: skip


def _senders(file: RoutesFile) -> tuple[U8, U8, U32]:
    switches, terminals = len(file.switch_guids), len(file.terminal_guids)
    covered = np.concatenate([np.ones(terminals, np.uint8), file.senders])
    end = np.concatenate([file.terminal_leaf, np.arange(switches)]).astype(np.uint32)
    return sends(file), covered, end


@njit(cache=True)
def _follow(
    table: U8,
    far: U32,
    lanes: U8,
    begin: U32,
    hops: U8,
    sender: U8,
    covered: U8,
    end: U32,
    depends: U8,
    amount: I64,
) -> None:  # pragma: no cover
    switches, wide = far.shape
    for o in range(table.shape[0]):
        for d in range(table.shape[2]):
            if not covered[d]:
                continue
            for source in range(switches):
                port = table[o, source, d]
                if not sender[source] or source == end[d] or port == 255:
                    continue
                wanted = begin[source, port]
                if not hops.shape[0]:
                    own = lanes[o, source, d]
                    wanted = np.uint32(0) if own == 255 else np.uint32(1) << np.uint32(own)
                for first in range(depends.shape[0]):
                    if not (wanted >> np.uint32(first)) & np.uint32(1):
                        continue
                    s, lane, p = np.int64(source), first, port
                    while True:
                        amount[s * wide + p] += 1
                        v = np.int64(far[s, p] >> 8)
                        if v == end[d] or table[o, v, d] == 255:
                            break
                        q = table[o, v, d]
                        depends[lane, s * wide + p, q] = 1
                        if hops.shape[0]:
                            lane = hops[v, far[s, p] & 255, q]
                        s, p = v, q


def _levels(file: RoutesFile) -> list[int]:
    level = [0 if each else -1 for each in sends(file)]
    queue = [s for s, at in enumerate(level) if at == 0]
    for s in queue:
        for far in file.far_ends[s]:
            if far != NO_SWITCH and level[far >> 8] < 0:
                level[far >> 8] = level[s] + 1
                queue.append(int(far) >> 8)
    return level


def _order(file: RoutesFile, depends: U8) -> U32 | None:
    """uint32[L · S · (P + 1)], by the algorithm of Kahn with a heap."""
    switches, wide = file.far_ends.shape
    level, plane = _levels(file), switches * wide
    follows: dict[int, list[int]] = {}
    waits = np.zeros(file.lanes * plane, np.int64)
    for lane, channel, port in zip(*np.nonzero(depends), strict=True):
        far = int(file.far_ends.flat[channel])
        on = int(lane)
        if file.hop_lanes is not None:
            on = int(file.hop_lanes[far >> 8, far & 255, port])
        to = on * plane + (far >> 8) * wide + int(port)
        follows.setdefault(int(lane) * plane + int(channel), []).append(to)
        waits[to] += 1

    def key(node: int) -> tuple[int, int, int]:
        s = node % plane // wide
        v = int(file.far_ends.flat[node % plane]) >> 8
        up = level[v] > level[s] or (level[v] == level[s] and v > s)
        return (0, level[s], node) if up else (1, -level[s], node)

    nodes = [
        lane * plane + int(c)
        for lane in range(file.lanes)
        for c in np.flatnonzero(file.far_ends.ravel() != NO_SWITCH)
    ]
    heap = [key(node) for node in nodes if not waits[node]]
    heapq.heapify(heap)
    number, done = np.zeros(file.lanes * plane, np.uint32), 0
    while heap:
        node = heapq.heappop(heap)[2]
        done += 1
        number[node] = done
        for to in follows.get(node, ()):
            waits[to] -= 1
            if not waits[to]:
                heapq.heappush(heap, key(to))
    return number if done == len(nodes) else None
