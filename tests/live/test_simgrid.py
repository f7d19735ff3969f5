"""Our fluid model against SimGrid's, an independent one: the same flows end at the same times; and
packets where they have to take as long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_jobs
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows
from sar_lab.research.packets import PacketModel, packet_times
from tests.examples import examples
from tests.worlds.live.ask_simgrid import has_simgrid, judged
from tests.worlds.slow_fluid import Case, cases

NEAR = 1e-9


pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not has_simgrid(), reason="needs Debian's python3-simgrid"),
]


def mixed_speeds(fabric: Fabric) -> Fabric:
    """Every third cable at a quarter of the speed, every fourth host at half."""
    slow = np.minimum(np.arange(fabric.channels), fabric.channel_reverse) % 3 == 0
    return replace(
        fabric,
        channel_rate=np.where(slow, 25, fabric.channel_rate).astype(np.float32),
        terminal_rate=np.where(np.arange(fabric.terminals) % 4, 100, 50).astype(np.float32),
    )


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("engine", ["minhop", "sar"])
@pytest.mark.parametrize("spec", ["xgft:2;6,6;1,3", "xgft:3;4,3,3;1,3,2"])
@pytest.mark.parametrize("mixed", [False, True])
def test_all_jobs_of_a_tree(spec: str, engine: str, pattern: str, mixed: bool) -> None:
    fabric = xgft_fabric(spec)
    if mixed:
        fabric = mixed_speeds(fabric)
    mix = multi_switch_mix(fabric, synthetic_jobs(fabric, 1, largest=12))
    assert len(mix.jobs) > 2
    flows = PATTERNS[pattern](fabric, mix)
    links = routed_links(fabric, load_engine(engine).route(fabric, mix, Options()), flows)
    ours, theirs = end_times(links, flows), np.array(judged(links, flows))
    assert ours == pytest.approx(theirs, rel=NEAR)
    assert ours.max() > 1.1


@examples(40)
@given(case=cases())
def test_random_flows(case: Case) -> None:
    links, flows = case
    assert end_times(links, flows) == pytest.approx(judged(links, flows), rel=NEAR)


@pytest.mark.parametrize("spec", ["xgft:2;4,4;1,4", "xgft:3;3,3,3;1,3,3"])
@pytest.mark.parametrize("shift", [1, 3, 5])
def test_packets_where_no_link_is_shared(spec: str, shift: int) -> None:
    """A shift over D-mod-k: packets take SimGrid's time and a flit for each further link."""
    fabric = xgft_fabric(spec)
    hosts = np.arange(fabric.terminals, dtype=np.uint32)
    segments = 1 + hosts % 7 * 5
    flows = one_phase(hosts, np.roll(hosts, -shift), segments)
    links = routed_links(fabric, load_engine("dmodk").route(fabric, JobMix(()), Options()), flows)
    flit = 8 * PacketModel.flit_bytes / 1e9 / float(links.capacity.max())
    later = (packet_times(fabric, links, flows).end - np.array(judged(links, flows))) / flit
    assert later == pytest.approx(links.stop - links.path - 1, abs=1e-3)


def one_phase(source: np.ndarray, destination: np.ndarray, segments: np.ndarray) -> Flows:
    """Messages of whole segments that start together."""
    nothing = np.zeros(len(source), np.uint32)
    size = segments * 8 * PacketModel.segment_bytes / 1e9
    return Flows(source, destination, size, nothing, nothing, np.ones(1, np.bool_), np.zeros(1))
