"""Messages as packets under adaptive routing by hardware's rules: queues of one switch only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64
from sar_lab.fluid.flow_links import F64
from sar_lab.fluid.flow_paths import link_rates
from sar_lab.fluid.flow_steps import Flows
from sar_lab.research.packets.adaptive_events import (
    PortGroups,
    QueuedFlows,
    SwitchPorts,
    run_adaptive,
)
from sar_lab.research.packets.packet_events import NONE
from sar_lab.research.packets.packet_model import PacketModel, clock_of, segments_of

Choice = Literal["packet", "flow"]


@dataclass(frozen=True, eq=False)
class AdaptiveRun:
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


def adaptive_times(
    fabric: Fabric,
    groups: PortGroups,
    flows: Flows,
    model: PacketModel | None = None,
    choice: Choice = "packet",
) -> AdaptiveRun:
    """Sends all flows; each segment (`packet`) or the first one of each message (`flow`) chooses
    among the ports of its group. Raises `CheckFailed` where a switch has no port for a segment, or
    packets wait for each other's buffers in a circle, and `InputError` as `packet_times`."""
    model = model or PacketModel()
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
    hops = run_adaptive(
        switch_ports(fabric),
        groups,
        queued,
        per_flit,
        model.segment_bytes // model.flit_bytes,
        model.buffer_segments,
        round(model.hop_seconds * ticks),
        choice == "packet",
        begin,
        end,
        overtaken,
        waited,
    )
    if hops < 0:
        raise CheckFailed(f"{fabric.name}: a switch has no port for a segment that came to it")
    if (stuck := np.flatnonzero((end < 0) & (begin[flows.step] >= 0))).size:
        raise CheckFailed(f"deadlock: packets of {len(stuck)} messages wait for each other's room")
    return AdaptiveRun(begin / ticks, end / ticks, overtaken, waited / ticks, int(hops))


def switch_ports(fabric: Fabric) -> SwitchPorts:
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


def crossbar_seconds(fabric: Fabric, flows: Flows) -> float:
    """What one step takes if only hosts' own links limit it."""
    sent = np.bincount(flows.source, flows.size, fabric.terminals)
    received = np.bincount(flows.destination, flows.size, fabric.terminals)
    return float((np.maximum(sent, received) / fabric.terminal_rate).max())
