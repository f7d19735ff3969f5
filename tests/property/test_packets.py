"""The packet simulator, on fixed paths and with adaptive routing: cases worked by hand, and the
fluid model where the two must agree."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import link_rates, routed_links
from sar_lab.fluid.flow_steps import Flows
from sar_lab.research.packets import Choice, PacketModel, PacketRun, adaptive_times, packet_times
from sar_lab.research.packets.adaptive_groups import minimal_groups, table_groups
from sar_lab.research.packets.packet_events import PortGroups
from tests.examples import examples
from tests.worlds.slow_fluid import case_of

MODEL = PacketModel()
SEGMENT = 8 * MODEL.segment_bytes / 1e9
"""Gbit."""
FLIT = 8 * MODEL.flit_bytes / 1e9
FLITS = MODEL.segment_bytes // MODEL.flit_bytes


def flows_of(pairs: ArrayLike, segments: ArrayLike) -> Flows:
    """One step of messages between these pairs of hosts."""
    source, destination = np.array(pairs, np.uint32).T
    zero = np.zeros(len(source), np.uint32)
    size = np.array(segments) * SEGMENT
    return Flows(source, destination, size, zero, zero, np.ones(1, np.bool_), np.zeros(1))


def run(
    ways: list[list[int]],
    segments: list[float],
    speed: float = 1.0,
    slow: float | None = None,
    **model: object,
) -> PacketRun:
    """One step: a message of so many segments over each way of switches, between two hosts of its
    own. Links have `speed` Gbit/s, the last one of the first message `slow`."""
    builder = FabricBuilder("by hand")
    for s in range(1 + max(map(max, ways))):
        builder.add_switch(1 + s, f"s{s}", 36)
    port = Counter[int]()
    cables = {tuple(sorted(pair)) for way in ways for pair in pairwise(way)}
    for a, b in sorted(cables):
        port.update((a, b))
        builder.add_link(a, port[a], b, port[b], rate=speed)
    for i, way in enumerate(ways):
        for end, switch in enumerate((way[0], way[-1])):
            port.update((switch,))
            rate = slow if end and not i and slow else speed
            name = f"h{2 * i + end}"
            builder.add_terminal(100 + 2 * i + end, name, name, switch, port[switch], rate=rate)
    fabric = builder.build()
    channel = {
        (int(a), int(b)): c
        for c, (a, b) in enumerate(zip(fabric.channel_source, fabric.channel_target, strict=True))
    }
    first, last = fabric.channels, fabric.channels + fabric.terminals
    paths = [
        [first + 2 * i, *(channel[pair] for pair in pairwise(way)), last + 2 * i + 1]
        for i, way in enumerate(ways)
    ]
    links, flows = case_of(
        link_rates(fabric), paths, np.array(segments) * SEGMENT, [False] * (len(ways) - 1), []
    )
    sender = 2 * np.arange(len(ways), dtype=np.uint32)
    flows = flows._replace(source=sender, destination=sender + np.uint32(1))
    return packet_times(fabric, links, flows, PacketModel(**model))  # type: ignore[arg-type]


def ticks(times: np.ndarray, capacity: float = 1.0) -> list[float]:
    """In flits' times on a link of this many Gbit/s."""
    return [round(float(t) * capacity / FLIT, 6) for t in times]


def test_a_message_alone_takes_its_own_time_and_a_flit_a_switch() -> None:
    """5 segments of 128 flits over 3 links: the first flit needs 2 flits' times to the last."""
    result = run([[0, 1]], [5])
    assert ticks(result.end) == [5 * 128 + 2] and result.hops == 15
    assert ticks(run([[0, 1]], [4.5]).end) == [4.5 * 128 + 2]
    slow = run([[0, 1]], [5], hop_seconds=10 * FLIT)
    assert ticks(slow.end) == [5 * 128 + 2 + 2 * 10]


def test_a_full_buffer_holds_up_a_message_that_goes_elsewhere() -> None:
    """A and B cross one link; A goes on over a link of an eighth of the speed. Its segments fill
    the buffer behind the shared link, so B waits for them: with its own queue, but not its own
    buffer."""
    a, b = run([[0, 1], [0, 1]], [40, 40], 8.0, 1.0, buffer_segments=4).end
    alone = run([[0, 1]], [40], 8.0, buffer_segments=4).end[0]
    assert b > 4 * alone, "the fluid model says twice at most"
    plenty = run([[0, 1], [0, 1]], [40, 40], 8.0, 1.0, buffer_segments=100).end
    assert plenty[1] < 2.1 * alone
    assert plenty[0] == pytest.approx(a, rel=0.01), "A's slow link is always busy"


def test_a_circle_of_full_buffers_is_a_deadlock() -> None:
    """Three links in a ring; each message crosses two of them and waits for the third's."""
    ring = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    with pytest.raises(CheckFailed, match="deadlock: packets of 3 messages"):
        run(ring, [50, 50, 50], buffer_segments=2)
    free = [[0, 1, 2], [1, 2, 0], [2, 0]]
    assert (run(free, [50, 50, 50], buffer_segments=2).end > 0).all()


def test_inconsistent_networks_are_refused() -> None:
    with pytest.raises(InputError, match="2,000 times as slow"):
        run([[0]], [1], 2000.0, 1.0)
    with pytest.raises(InputError, match="segment_bytes is at least 1"):
        PacketModel(segment_bytes=0)
    with pytest.raises(InputError, match="no multiple of a flit"):
        PacketModel(segment_bytes=1001)
    with pytest.raises(InputError, match="segments"):
        run([[0]], [1e15])


@examples(60)
@given(data=st.data(), seed=st.integers(0, 10**6), buffer=st.sampled_from([1, 2, 8]))
def test_against_the_fluid_model(data: st.DataObject, seed: int, buffer: int) -> None:
    """A permutation: never faster than its busiest link and its own bytes; where no link is shared,
    as fast as the fluid model but for a flit a hop and the buffers'. With one port a group,
    adaptive routing does the same work in the same times."""
    fabric = xgft_fabric(data.draw(st.sampled_from(["xgft:2;4,4;1,4", "xgft:3;3,3,3;1,3,2"])))
    random = np.random.default_rng(seed)
    hosts = random.permutation(fabric.terminals)
    some = data.draw(st.integers(2, fabric.terminals))
    segments = random.integers(1, 30, some)
    flows = flows_of(np.stack([hosts[:some], np.roll(hosts[:some], 1)], axis=1), segments)
    routes = load_engine("ftree").route(fabric, JobMix(()), Options())
    links = routed_links(fabric, routes, flows)
    model = PacketModel(buffer_segments=buffer)
    result = packet_times(fabric, links, flows, model)
    for choice in CHOICES:
        run = adaptive_times(fabric, table_groups(fabric, routes), flows, model, choice)
        assert run.hops == result.hops and not run.overtaken.any()
        assert run.end == pytest.approx(result.end)
    speed = float(links.capacity.max())
    used = np.zeros(len(links.capacity))
    for f in range(some):
        used[links.link[links.path[f] : links.stop[f]]] += segments[f]
    hops = links.stop - links.path
    assert result.hops == int((segments * hops).sum())
    found = result.end * speed / FLIT
    assert (found >= segments * FLITS + hops - 1 - 1e-6).all()
    assert found.max() >= used.max() * FLITS
    fluid = end_times(links, flows) * speed / FLIT
    busiest = np.array(
        [used[links.link[a:b]].max() for a, b in zip(links.path, links.stop, strict=True)]
    )
    alone = busiest == segments
    slack = hops - 1 + (segments if buffer == 1 else 0)
    assert (found[alone] <= fluid[alone] + slack[alone] + 1e-6).all()


CHOICES: tuple[Choice, ...] = ("packet", "flow")


def ticks_of(fabric: Fabric, run: PacketRun) -> list[int]:
    return [round(float(t) * float(fabric.terminal_rate[0]) / FLIT) for t in run.end]


@pytest.mark.parametrize("choice", CHOICES)
def test_two_messages_from_a_leaf_part_at_the_switch(choice: Choice) -> None:
    """Hosts 0 and 1 send to 2 and 3. On one spine they take turns, 6 segments' time; the second to
    arrive finds the first's port in use and takes the other, so neither waits."""
    fabric = load_fabric("xgft:2;2,2;1,2")
    both = flows_of([(0, 2), (1, 3)], [3, 3])
    groups = minimal_groups(fabric)
    assert (
        ticks_of(fabric, adaptive_times(fabric, groups, both, choice=choice)) == [3 * 128 + 3] * 2
    )
    up = [c for c in range(fabric.channels) if fabric.channel_source[c] == 0]
    one = np.isin(groups.channel, up[1:], invert=True)
    start = np.concatenate([[0], np.cumsum(one)])[groups.start].astype(np.uint32)
    found = ticks_of(
        fabric, adaptive_times(fabric, PortGroups(start, groups.channel[one]), both, choice=choice)
    )
    assert sorted(found) == [5 * 128 + 3, 6 * 128 + 3]
