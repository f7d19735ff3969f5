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
from typing import Literal

import numpy as np

from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64, U32
from sar_lab.fluid.flow_links import F64, FlowLinks
from sar_lab.fluid.flow_paths import link_rates
from sar_lab.fluid.flow_steps import Flows
from sar_lab.research.packets.packet_events import (
    NONE,
    PortGroups,
    QueuedFlows,
    SwitchPorts,
    run_packets,
)

BITS = 8
GIGA = 1e9
SLOWEST = 1024
"""The most times that a link may be slower than the fastest one."""
FINE = 16
"""Ticks of a flit where speeds are no multiples of each other."""
MOST_SEGMENTS = 1 << 40
"""Segments of all messages: some days of one core."""


MOST_HOPS = 32
"""Switches that a segment may pass where it chooses its way."""
Choice = Literal["packet", "flow"]


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
    overtaken: I64
    """int64[F]: segments that arrived after a later one of the same message. Receivers take them
    as they come: reordering itself costs nothing here."""
    waited: F64
    """float64[L], seconds: how long segments in switches, all in all, waited for each link after
    they could have gone on. The links are those of `sar_lab/fluid/flow_links.py`."""
    hops: int
    """Segments times links: the work that was done."""


def packet_times(
    fabric: Fabric, links: FlowLinks, flows: Flows, model: PacketModel | None = None
) -> PacketRun:
    """Sends all flows over their links, which are those of the fabric. Raises `CheckFailed` where
    packets wait for each other's buffers in a circle, and `InputError` for links too different to
    have a common clock."""
    channels = (links.stop - links.path).astype(np.int64) - 2
    chosen = np.full((len(channels), max(MOST_HOPS, int(channels.max()) + 1)), NONE, np.uint32)
    row = np.repeat(np.arange(len(channels)), channels)
    place = np.arange(len(row)) - np.repeat(np.cumsum(channels) - channels, channels)
    chosen[row, place] = links.link[links.path[row] + 1 + place]
    nothing = PortGroups(
        np.zeros(fabric.switches * fabric.terminals + 1, np.uint32), np.zeros(0, np.uint32)
    )
    return _run(fabric, nothing, chosen, False, flows, model or PacketModel())


def adaptive_times(
    fabric: Fabric,
    groups: PortGroups,
    flows: Flows,
    model: PacketModel | None = None,
    choice: Choice = "packet",
) -> PacketRun:
    """Sends all flows; each segment (`packet`) or the first one of each message (`flow`) chooses
    among the ports of its group. Raises `CheckFailed` also where a switch has no port for a
    segment."""
    by_packet = choice == "packet"
    chosen = np.full((1 if by_packet else len(flows.size), MOST_HOPS), NONE, np.uint32)
    return _run(fabric, groups, chosen, by_packet, flows, model or PacketModel())


def _run(
    fabric: Fabric,
    groups: PortGroups,
    chosen: U32,
    by_packet: bool,
    flows: Flows,
    model: PacketModel,
) -> PacketRun:
    rates = link_rates(fabric)
    ticks, per_flit = clock_of(rates, model)
    segments, last_flits = segments_of(flows.size, model)
    begin = np.full(len(flows.wait), -1, np.int64)
    end, overtaken = np.full(len(segments), -1, np.int64), np.zeros(len(segments), np.int64)
    queued = QueuedFlows(
        flows.source,
        flows.destination,
        segments,
        last_flits,
        flows.step,
        flows.last,
        np.round(flows.wait * ticks).astype(np.int64),
    )
    waited = np.zeros(len(rates), np.int64)
    hops = run_packets(
        _switch_ports(fabric),
        groups,
        queued,
        per_flit,
        model.segment_bytes // model.flit_bytes,
        model.buffer_segments,
        round(model.hop_seconds * ticks),
        chosen,
        by_packet,
        begin,
        end,
        overtaken,
        waited,
    )
    if hops < 0:
        raise CheckFailed(f"{fabric.name}: a switch has no port for a segment that came to it")
    if (stuck := np.flatnonzero((end < 0) & (begin[flows.step] >= 0))).size:
        raise CheckFailed(
            f"deadlock: packets of {len(stuck)} messages wait for each other's buffers; one is "
            f"from terminal {flows.source[stuck[0]]} to {flows.destination[stuck[0]]}"
        )
    return PacketRun(begin / ticks, end / ticks, overtaken, waited / ticks, int(hops))


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


def _switch_ports(fabric: Fabric) -> SwitchPorts:
    """Channels first, then hosts, at every switch."""
    offset = fabric.channel_offset.astype(np.int64)
    leaf = fabric.terminal_switch.astype(np.int64)
    order = np.argsort(leaf, kind="stable")
    place = np.empty(fabric.terminals, np.int64)
    place[order] = np.arange(fabric.terminals) - np.searchsorted(leaf[order], leaf[order])
    place += np.diff(offset)[leaf]
    channel = np.arange(fabric.channels) - offset[fabric.channel_source]
    degree = np.diff(offset) + np.bincount(leaf, minlength=fabric.switches)
    nowhere = np.full(fabric.terminals, NONE)
    parts = (
        (fabric.channel_target, leaf, nowhere),
        (channel[fabric.channel_reverse], place, nowhere),
        (channel, nowhere, place),
        (degree,),
        ([0], np.cumsum(degree**2)),
        (leaf,),
    )
    return SwitchPorts(*(np.concatenate(each).astype(np.uint32) for each in parts))
