"""Adaptive routing in packets: cases worked by hand, the simulator of fixed paths, the fluid
model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows
from sar_lab.research.packets import Choice, PacketModel, PacketRun, adaptive_times, packet_times
from sar_lab.research.packets.adaptive_groups import minimal_groups, table_groups
from sar_lab.research.packets.packet_events import PortGroups
from tests.examples import examples

MODEL = PacketModel()
SEGMENT = 8 * MODEL.segment_bytes / 1e9
FLIT = 8 * MODEL.flit_bytes / 1e9
NOBODY = JobMix(())
CHOICES: tuple[Choice, ...] = ("packet", "flow")


def flows_of(pairs: list[tuple[int, int]], segments: list[float]) -> Flows:
    source, destination = np.array(pairs, np.uint32).T
    zero = np.zeros(len(pairs), np.uint32)
    size = np.array(segments) * SEGMENT
    return Flows(source, destination, size, zero, zero, np.ones(1, np.bool_), np.zeros(1))


def ticks(fabric: Fabric, run: PacketRun) -> list[int]:
    return [round(float(t) * float(fabric.terminal_rate[0]) / FLIT) for t in run.end]


@pytest.mark.parametrize("choice", CHOICES)
def test_two_messages_from_a_leaf_part_at_the_switch(choice: Choice) -> None:
    """Hosts 0 and 1 send to 2 and 3. On one spine they take turns, 6 segments' time; the second to
    arrive finds the first's port in use and takes the other, so neither waits."""
    fabric = load_fabric("xgft:2;2,2;1,2")
    both = flows_of([(0, 2), (1, 3)], [3, 3])
    groups = minimal_groups(fabric)
    assert ticks(fabric, adaptive_times(fabric, groups, both, choice=choice)) == [3 * 128 + 3] * 2
    up = [c for c in range(fabric.channels) if fabric.channel_source[c] == 0]
    one = np.isin(groups.channel, up[1:], invert=True)
    start = np.concatenate([[0], np.cumsum(one)])[groups.start].astype(np.uint32)
    found = ticks(
        fabric, adaptive_times(fabric, PortGroups(start, groups.channel[one]), both, choice=choice)
    )
    assert sorted(found) == [5 * 128 + 3, 6 * 128 + 3]


@examples(40)
@given(data=st.data(), seed=st.integers(0, 10**6), buffer=st.sampled_from([1, 2, 8]))
def test_one_port_a_group_is_the_simulator_of_fixed_paths(
    data: st.DataObject, seed: int, buffer: int
) -> None:
    """The same work and the same times."""
    fabric = load_fabric(data.draw(st.sampled_from(["xgft:2;4,4;1,4", "xgft:3;3,3,3;1,3,2"])))
    random = np.random.default_rng(seed)
    hosts = random.permutation(fabric.terminals)[: data.draw(st.integers(2, fabric.terminals))]
    segments = random.integers(1, 30, len(hosts))
    pairs = list(zip(hosts.tolist(), np.roll(hosts, 1).tolist(), strict=True))
    flows = flows_of(pairs, segments.tolist())
    routes = load_engine("ftree").route(fabric, NOBODY, Options())
    model = PacketModel(buffer_segments=buffer)
    links = routed_links(fabric, routes, flows)
    fixed = packet_times(fabric, links, flows, model)
    for choice in CHOICES:
        run = adaptive_times(fabric, table_groups(fabric, routes), flows, model, choice)
        assert run.hops == fixed.hops and not run.overtaken.any()
        assert run.end == pytest.approx(fixed.end)
