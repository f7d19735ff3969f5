"""Congestion against a slow count, and what must hold whatever the pattern."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.research.orcs import METRICS, Congestion, Network, network_of_routes, simulate
from sar_lab.research.orcs.level_schedule import Schedule, schedule_of
from sar_lab.research.orcs.network import NONE
from sar_lab.research.orcs.orcs_patterns import NAMED, RANDOM
from tests.examples import examples
from tests.worlds.networks import networks

Pair = tuple[int, int]


def way(network: Network, source: int, destination: int) -> list[int]:
    """Links from host to host."""
    links, at = list[int](), int(network.place[source])
    while at != network.place[destination]:
        first = int(network.enter[source])
        link = first if first != NONE and not links else int(network.hop[at, destination])
        assert link != NONE and len(links) < 50
        links.append(link)
        at = int(network.head[link])
    return links


def congestions(network: Network, hosts: list[int], level: list[Pair]) -> list[int]:
    """For each pair of ranks the messages on the fullest link of its way."""
    ways = [way(network, hosts[a], hosts[b]) for a, b in level]
    load = Counter(itertools.chain(*ways))
    return [max(load[link] for link in links) for links in ways]


def longest_delay(network: Network, hosts: list[int], levels: list[list[Pair]], k: int) -> int:
    """A vertex for each message and end, chained as ORCS chains them; the longest path."""
    longest = 0
    before: dict[int, int] = {}
    for level in levels:
        weights = congestions(network, hosts, level)
        now: dict[int, int] = {}
        senders: set[int] = set()
        for (a, b), weight in zip(level, weights, strict=True):
            if a >= k or b >= k:
                continue
            end = weight + (0 if a in senders else before.get(a, 0))
            senders.add(a)
            now.setdefault(b, end)
            longest = max(longest, end)
        before = now
    return longest


SINGLE = [*(name for name in NAMED if name != RANDOM), "neighbor:1", "neighbor:3"]


def network_of(network: tuple[Fabric, JobMix]) -> Network:
    fabric, _ = network
    return network_of_routes(fabric, load_engine("dfsssp").route(fabric, JobMix.of([]), Options()))


def levels_of(schedule: Schedule) -> list[list[Pair]]:
    pairs = list(zip(schedule.source.tolist(), schedule.destination.tolist(), strict=True))
    return [pairs[a:b] for a, b in itertools.pairwise(schedule.level)]


def one_run(network: Network, schedule: Schedule, order: list[int]) -> dict[str, Congestion]:
    hosts = np.array(order, np.int32)
    return {metric: simulate(network, schedule, metric, order=hosts) for metric in METRICS}


@examples(150)
@given(network=networks(), data=st.data())
def test_all_metrics_of_one_run(network: tuple[Fabric, JobMix], data: st.DataObject) -> None:
    found = network_of(network)
    hosts = len(found.guid)
    order = data.draw(st.permutations(range(hosts)))
    first = data.draw(st.integers(2, hosts - 1)) if hosts > 2 else None
    pattern = data.draw(st.sampled_from(SINGLE))
    if first and data.draw(st.booleans()):
        pattern += "::" + data.draw(st.sampled_from(SINGLE))
    schedule = schedule_of(pattern, hosts, first)
    levels = levels_of(schedule)
    each = [congestions(found, order, level) for level in levels]
    flat = sorted(itertools.chain(*each))
    seen = one_run(found, schedule, order)
    assert seen["sum_max_cong"].values.tolist() == [sum(map(max, each))]
    assert np.repeat(seen["hist_max_cong"].values, seen["hist_max_cong"].times).tolist() == flat
    if flat:
        mean = sum(1 / c for c in flat) / len(flat)
        assert seen["hist_acc_band"].values == pytest.approx([mean])
    else:
        assert seen["hist_acc_band"].json()["avg"] is None
    slow = longest_delay(found, order, levels, first or hosts)
    assert seen["dep_max_delay"].values.tolist() == [slow]


@pytest.mark.parametrize("metric", METRICS)
def test_a_second_group_that_sends_nothing(metric: str) -> None:
    """Three hosts in a fixed order, of which two are the first group: nobody sends."""
    fabric = load_fabric("xgft:1;3;1")
    network = network_of((fabric, JobMix(())))
    nobody = schedule_of("null::alltoall", 3, 2)
    found = simulate(network, nobody, metric, order=np.arange(3, dtype=np.int32))
    assert found.json()["avg"] in (0, None)
