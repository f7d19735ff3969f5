"""Incast, grids and offered load: who sends to whom, by which links, and what waits where."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_lab.research.packets import PacketModel, packet_times
from sar_lab.research.packets.adaptive_groups import minimal_groups, table_groups
from sar_lab.research.packets.adaptive_model import adaptive_times
from sar_lab.research.peers import adaptive_patterns as study

FABRIC = load_fabric("xgft:2;4,4;1,4")
MIX = JobMix.of([make_job("1", [2, 5, 6, 9, 10, 13, 14, 3, 7]), make_job("2", [0, 4, 8, 12, 1])])


def test_keys_lead_from_host_to_host_and_a_step_of_one_job_meets_itself_nowhere() -> None:
    alone = JobMix.of([MIX.jobs[1]])
    steps = study.grid(FABRIC, alone)
    links = study.key_links(FABRIC, alone, steps)
    first, last = FABRIC.channels, FABRIC.channels + FABRIC.terminals
    for f, (source, destination) in enumerate(zip(steps.source, steps.destination, strict=True)):
        way = links.link[links.path[f] : links.stop[f]].tolist()
        assert (way[0], way[-1]) == (first + source, last + destination)
        at = FABRIC.terminal_switch[source]
        for channel in way[1:-1]:
            assert FABRIC.channel_source[channel] == at
            at = FABRIC.channel_target[channel]
        assert at == FABRIC.terminal_switch[destination]
    end = packet_times(links, steps, study.MODEL).end.max()
    # A step takes what its segments take, and the last flit's way through three switches.
    assert end == pytest.approx(study.SEGMENTS * study.segment_seconds(FABRIC), rel=0.02)


def test_waiting_is_counted_where_it_happens() -> None:
    """Hosts 0 and 1 send three segments each to hosts 4 and 5 over one spine: one of the two always
    waits for the link up, and nothing waits for links down."""
    first, last = FABRIC.terminal_switch[[0, 12]]
    routes = load_engine("ftree").route(FABRIC, JobMix(()), Options())
    routes.egress[0, 5, first] = routes.egress[0, 4, first]
    flows = study._steps([[np.array([[0, 4], [1, 5]], np.int32)]], [3.0])
    run = adaptive_times(FABRIC, table_groups(FABRIC, routes), flows, PacketModel())
    where = np.flatnonzero(run.waited)
    assert FABRIC.channel_source[where].tolist() == [first]
    # In segments' time: 0, 1 and 2 for one of the messages, 1, 2 and 3 for the other.
    assert run.waited[where[0]] / study.segment_seconds(FABRIC) == pytest.approx(9, rel=0.02)
    assert study.share_down(FABRIC, run) == 0
    free = adaptive_times(FABRIC, minimal_groups(FABRIC), flows, PacketModel())
    assert not free.waited.any() and study.share_down(FABRIC, free) == 0
    other = np.arange(FABRIC.switches) != last
    routes.egress[0, 13, other] = routes.egress[0, 12, other]
    down = study._steps([[np.array([[0, 12], [4, 13]], np.int32)]], [3.0])
    met = adaptive_times(FABRIC, table_groups(FABRIC, routes), down, PacketModel())
    where = np.flatnonzero(met.waited)
    assert FABRIC.channel_target[where].tolist() == [last] and study.share_down(FABRIC, met) == 1
