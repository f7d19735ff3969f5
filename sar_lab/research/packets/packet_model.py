"""Messages as packets: how long they take where buffers are finite.

The network is that of Venus (oblivious-xgft-2009, Section VI): a message is cut into segments, a
host sends the segments of its messages in turns, and switches have buffers at their inputs with a
queue for each output (virtual output queues). A segment starts over a link only if the buffer at
its end has room, which the sender knows from credits. An output serves its queues in turns, one
segment at a time; no speed limit applies inside a switch. Switches cut through: a segment goes on
as soon as its first flit is in, if its next link is free, and keeps its place in the buffer
until its last flit has left. Receivers take everything at once. There is one virtual lane; links
lose nothing.

The defaults are what that paper prints: flits of 8 bytes, segments of 1 KB, turns. Its 2 Gbit/s
are a property of the links. It prints no size of a buffer: ours has room for 8 segments a link.
Phases, computation and barriers are those of `Flows`, as in the fluid model (`sar_lab/fluid/`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric.model import I64
from sar_lab.fluid.flow_links import F64, FlowLinks
from sar_lab.fluid.flow_steps import Flows
from sar_lab.research.packets.packet_events import NONE, PacketQueues, run_packets

BITS = 8
GIGA = 1e9
SLOWEST = 1024
"""The most times that a link may be slower than the fastest one."""
FINE = 16
"""Ticks of a flit where speeds are no multiples of each other."""
MOST_SEGMENTS = 1 << 40
"""Segments of all messages: some days of one core."""


@dataclass(frozen=True)
class PacketModel:
    """The network's parameters."""

    flit_bytes: int = 8
    segment_bytes: int = 1024
    buffer_segments: int = 8
    """Segments that fit into the buffer behind a link."""
    hop_seconds: float = 0.0
    """What a switch takes on top of a flit's time."""

    def __post_init__(self) -> None:
        for name in ("flit_bytes", "segment_bytes", "buffer_segments"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.segment_bytes % self.flit_bytes:
            raise InputError(
                f"a segment of {self.segment_bytes} bytes is no multiple of a flit of "
                f"{self.flit_bytes}"
            )
        if not self.hop_seconds >= 0:
            raise InputError(f"hop_seconds is at least 0, not {self.hop_seconds}")


@dataclass(frozen=True, eq=False)
class PacketRun:
    """What happened to F messages."""

    begin: F64
    """float64[P], seconds: when each step begins to send."""
    end: F64
    """float64[F], seconds: when the last flit of each message arrives."""
    hops: int
    """Segments times links: the work that was done."""


def packet_times(links: FlowLinks, flows: Flows, model: PacketModel | None = None) -> PacketRun:
    """Sends all flows over their links. Raises `CheckFailed` where packets wait for each other's
    buffers in a circle, and `InputError` for links too different to have a common clock."""
    model = model or PacketModel()
    ticks, per_flit = clock_of(links.capacity, model)
    segments, last_flits = segments_of(flows.size, model)
    hop = round(model.hop_seconds * ticks)
    queues = _queues(links)
    begin, end = np.full(len(flows.wait), -1, np.int64), np.full(len(segments), -1, np.int64)
    hops = run_packets(
        queues,
        per_flit,
        segments,
        last_flits,
        model.segment_bytes // model.flit_bytes,
        model.buffer_segments,
        hop,
        flows.step,
        flows.last,
        np.round(flows.wait * ticks).astype(np.int64),
        begin,
        end,
    )
    if (stuck := np.flatnonzero((end < 0) & (begin[flows.step] >= 0))).size:
        raise CheckFailed(
            f"deadlock: packets of {len(stuck)} messages wait for each other's buffers; one is "
            f"from terminal {flows.source[stuck[0]]} to {flows.destination[stuck[0]]}"
        )
    return PacketRun(begin / ticks, end / ticks, int(hops))


def segments_of(size: F64, model: PacketModel) -> tuple[I64, I64]:
    """(int64[F], int64[F]): segments of messages of `size` float64[F] Gbit, and flits of each
    one's last. Raises `InputError` for more than `MOST_SEGMENTS`."""
    flits = np.maximum(1, np.ceil(size * GIGA / BITS / model.flit_bytes - 1e-6))
    whole = model.segment_bytes // model.flit_bytes
    segments = np.ceil(flits / whole)
    if segments.sum() > MOST_SEGMENTS:
        raise InputError(
            f"the messages are {segments.sum():,.0f} segments", remedy="send less, or larger ones"
        )
    return segments.astype(np.int64), (flits - (segments - 1) * whole).astype(np.int64)


def clock_of(capacity: F64, model: PacketModel) -> tuple[float, I64]:
    """Ticks a second, and int64[L]: ticks of a flit on each link."""
    fastest = float(capacity.max())
    ratio = fastest / capacity
    if not ratio.max() <= SLOWEST:
        raise InputError(
            f"a link is {ratio.max():,.0f} times as slow as another", remedy=f"at most {SLOWEST}"
        )
    fine = 1 if np.allclose(ratio, np.round(ratio), rtol=1e-9) else FINE
    ticks = fine * fastest * GIGA / BITS / model.flit_bytes
    return ticks, np.round(ratio * fine).astype(np.int64)


def _queues(links: FlowLinks) -> PacketQueues:
    """A queue for each pair of links that some flow crosses one after the other, and one for each
    flow at its host."""
    flows, size = len(links.stop), np.uint64(len(links.capacity))
    hops = (links.stop - links.path).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(hops)])
    entry = np.arange(start[-1]) - np.repeat(start[:-1] - links.path, hops)
    link = links.link[entry]
    first = np.zeros(len(link), np.bool_)
    first[start[:-1]] = True
    inner = np.flatnonzero(~first)
    pair = link[inner - 1].astype(np.uint64) * size + link[inner]
    pairs, of_pair = np.unique(pair, return_inverse=True)
    queue = np.empty(len(link), np.uint32)
    queue[inner] = of_pair
    queue[first] = len(pairs) + np.arange(flows)
    return PacketQueues(
        start.astype(np.uint32),
        link.astype(np.uint32),
        queue,
        np.concatenate([pairs % size, link[first]]).astype(np.uint32),
        np.concatenate([pairs // size, np.full(flows, NONE)]).astype(np.uint32),
    )
