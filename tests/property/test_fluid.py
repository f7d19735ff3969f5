"""The fluid model: its rates are max-min fair, its times those of exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_links import start_flow
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.max_min_share import set_max_min_rates
from tests.examples import examples
from tests.worlds.networks import networks
from tests.worlds.oracles import path
from tests.worlds.slow_fluid import (
    Case,
    case_of,
    cases,
    end_times_slowly,
    water_filling,
    ways,
)

NEAR = 1e-9


@examples(200)
@given(case=cases())
def test_rates_are_those_of_water_filling(case: Case) -> None:
    links, flows = case
    running = np.arange(len(flows.size), dtype=np.uint32)
    for f in running:
        start_flow(links, f)
        links.moves[f] = True
    set_max_min_rates(links, running, running.copy(), len(running))
    way = dict(enumerate(ways(links)))
    slow = water_filling([Fraction(c) for c in links.capacity.tolist()], way)
    assert links.rate == pytest.approx([float(slow[f]) for f in way], rel=NEAR)

    carried = np.bincount(links.link, links.rate[links.flow], len(links.users))
    assert (carried <= links.capacity * (1 + NEAR)).all()
    for f, over in way.items():  # everyone has a full link where nobody gets more
        assert any(
            carried[c] >= links.capacity[c] * (1 - NEAR)
            and all(
                links.rate[g] <= links.rate[f] * (1 + NEAR) for g, also in way.items() if c in also
            )
            for c in over
        )


@examples(200)
@given(case=cases())
def test_times_are_those_of_exact_arithmetic(case: Case) -> None:
    links, flows = case
    slow = end_times_slowly(links, flows)
    end = end_times(links, flows)
    assert end == pytest.approx([float(t) for t in slow], rel=NEAR)
    assert not links.users.any()
    # What a link carried, it carried no faster than it can.
    carried = np.bincount(links.link, flows.size[links.flow], len(links.users))
    busy_until = np.zeros(len(links.users))
    np.maximum.at(busy_until, links.link, end[links.flow])
    assert (busy_until >= carried / links.capacity * (1 - NEAR)).all()


def test_a_limit_is_lost_on_a_link_that_stays_full() -> None:
    """When `x` ends, `new` starts and slows `a` down; `b` takes at once what `a` leaves of link 1,
    and `g`, which link 1 held at the pace of `b`, must get its part of it."""
    x, new, g, a, b = [0], [2], [1], [1, 2], [1, 0]
    others = [[3], [4], [5], [6]]
    links, flows = case_of(
        [2, 3, 1.5, 1, 1, 1, 1],
        [x, new, g, a, b, *others],
        [1, *[10] * 8],
        [True] * 2 + [False] * 6,
        [False, True],
    )
    slow = [float(t) for t in end_times_slowly(links, flows)]
    assert end_times(links, flows) == pytest.approx(slow, rel=NEAR)


@examples(60)
@pytest.mark.parametrize("pattern", PATTERNS)
@given(network=networks())
def test_flows_are_every_pair_of_a_job_on_its_route(
    pattern: str, network: tuple[Fabric, JobMix]
) -> None:
    fabric, mix = network
    routes = load_engine("sar").route(fabric, mix, Options())
    flows = PATTERNS[pattern](fabric, mix)
    links = routed_links(fabric, routes, flows)
    pairs = sorted(zip(flows.job, flows.source, flows.destination, strict=True))
    assert pairs == [
        (j, s, d)
        for j, job in enumerate(mix.jobs)
        for s in job.terminals
        for d in job.terminals
        if s != d
    ]
    for s, d, way in zip(flows.source, flows.destination, ways(links), strict=True):
        channels = path(fabric, routes, int(fabric.terminal_switch[s]), int(d))
        assert channels is not None
        ends = fabric.channels + int(s), fabric.channels + fabric.terminals + int(d)
        assert way == [ends[0], *channels, ends[1]]
    # The measure's load is what these flows bring to a channel while each job takes 1 second.
    brought = np.bincount(links.link, flows.size[links.flow], len(links.users))
    load = traffic_of(fabric, mix, routes).load
    assert brought[: fabric.channels] == pytest.approx(load * fabric.channel_rate)
    if mix.jobs:
        times = job_times(fabric, mix, routes, PATTERNS[pattern])
        assert times.time.min() >= 1 - NEAR
        assert times.time.max() >= load.max() * (1 - NEAR)
