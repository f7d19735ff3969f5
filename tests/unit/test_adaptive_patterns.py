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
from sar_lab.research.peers.adaptive_patterns import PatternResult

FABRIC = load_fabric("xgft:2;4,4;1,4")
MIX = JobMix.of([make_job("1", [2, 5, 6, 9, 10, 13, 14, 3, 7]), make_job("2", [0, 4, 8, 12, 1])])


def test_who_sends_to_whom() -> None:
    flows = study.incast(FABRIC, MIX)
    assert set(flows.destination[flows.job == 0].tolist()) == {int(MIX.jobs[0].terminals[0])}
    assert [len(job.terminals) for job in MIX.jobs] == [9, 5]
    assert np.bincount(flows.job).tolist() == [8, 5 * 4] and flows.last.all()
    sent = np.bincount(flows.source[flows.job == 1], flows.size[flows.job == 1])
    assert sent[sent > 0] == pytest.approx(study.SEGMENTS * study.segment_gbit())
    received = flows.size[flows.job == 0].sum()
    assert received == pytest.approx(study.SEGMENTS * study.segment_gbit())
    for job, phases in zip(MIX.jobs, study.grid_phases(MIX), strict=True):
        assert len(phases) == 4
        for phase in phases:
            assert sorted(phase[:, 0]) == sorted(phase[:, 1]) == sorted(job.terminals)
            assert (phase[:, 0] != phase[:, 1]).all()
    steps = study.grid(FABRIC, MIX)
    assert steps.last.tolist() == ([False] * (study.STEPS - 1) + [True]) * 2
    pairs = {*zip(*(e.tolist() for e in study.offered(FABRIC, MIX, 0.5, 1)[:2]), strict=True)}
    senders = [a for a, _ in pairs]
    assert len(set(senders)) == len(senders) == len({b for _, b in pairs}), "one partner each"


def test_the_load_is_the_offered_one() -> None:
    flows = study.offered(FABRIC, MIX, 0.5, 2)
    segments = flows.size.sum() / study.segment_gbit()
    assert segments / (14 * study.WINDOW) == pytest.approx(0.5, rel=0.15)
    assert (np.diff(flows.wait) >= 0).all()
    assert flows.wait.max() < study.WINDOW * study.segment_seconds(FABRIC)


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


@pytest.mark.parametrize("seed", range(4))
def test_the_statements_are_judged_by_their_words(seed: int) -> None:
    random = np.random.default_rng(seed)
    rank = {row: float(r) for row, r in zip(study.COLOURS, random.permutation(6) + 1, strict=True)}
    some = {
        row: [PatternResult(level * (1 + 0.01 * k), level, level, 0) for k in range(6)]
        for row, level in rank.items()
    }
    claims = study.claims_of(dict.fromkeys(study.PATTERNS, some))
    assert len(claims) == 10
    for claim in claims:
        words = claim.says.rpartition(": ")[2]
        [one, other] = (
            [row for row in rank if words.startswith(f"{row} ")],
            [row for row in rank if words.endswith(f" {row}")],
        )
        less = any(word in words for word in (" faster than ", " below "))
        first, second = rank[max(one, key=len)], rank[max(other, key=len)]
        assert claim.holds is (first < second if less else first > second), claim
