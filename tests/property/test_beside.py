"""Work on a second processor changes no byte."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, PreviousRoutes, load_engine
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.util import beside
from sar_lab.assess.rate import rate_all
from tests.examples import examples
from tests.property.networks import networks


def on_processors(count: int, work):  # type: ignore[no-untyped-def]
    with patch.object(beside, "processors", lambda: count):
        try:
            return work()
        except SarError as error:
            return type(error), str(error)


def same(one: Plan, two: Plan) -> bool:
    images = [replace(plan, made_at=0.0).image for plan in (one, two)]
    arrays = ("channel_efi", "channel_load")
    return (
        images[0] == images[1]
        and one.measures.json() == two.measures.json()
        and all(
            np.array_equal(getattr(one.measures, name), getattr(two.measures, name))
            for name in arrays
        )
        and all(np.array_equal(*pair) for pair in zip(*map(_lists, (one, two)), strict=True))
    )


def _lists(plan: Plan) -> tuple[NDArray[np.integer], ...]:
    """The lists of channels, without the places at the end that nothing uses."""
    lists = plan.traffic.lists
    end = lists.offset[-1]
    return lists.offset, lists.channel[:end], lists.routes[:end]


@examples(60)
@given(network=networks())
def test_one_and_two_processors_make_the_same_plans(network: tuple[Fabric, JobMix]) -> None:
    fabric, mix = network
    routes = [load_engine("sar-plus").route(fabric, m, Options()) for m in (mix, JobMix(()))]

    def plans() -> list[Plan]:
        first = make_plan(1, fabric, mix, routes[0])
        return [first, make_plan(2, fabric, JobMix(()), routes[1], before=first)]

    one, two = (on_processors(count, plans) for count in (1, 2))
    if isinstance(one, tuple):
        assert one == two  # both are refused for the same reason
    else:
        assert all(same(*pair) for pair in zip(one, two, strict=True))


def test_a_large_plan_is_the_same() -> None:
    fabric = load_fabric("xgft:3;12,12,12;1,12,12")
    mix = synthetic_mix(fabric, 1)
    routes = load_engine("sar-plus").route(fabric, mix, Options())
    one, two = (on_processors(n, lambda: make_plan(1, fabric, mix, routes)) for n in (1, 2))
    assert same(one, two)


@pytest.mark.parametrize("count", (1, 2))
def test_later_changes_leave_earlier_tables_alone(count: int) -> None:
    fabric = load_fabric("xgft:2;6,6;1,3")
    mixes = [synthetic_mix(fabric, seed) for seed in (1, 2)]
    broken = fabric.with_links_down([0])

    def changed() -> None:
        engine = SarPlus()
        routes = engine.route(fabric, mixes[0], Options())
        before = PreviousRoutes(fabric, mixes[0], routes)
        for now, mix in ((fabric, mixes[1]), (broken, mixes[1]), (broken, mixes[0])):
            kept = before.routes.egress.copy()
            after = engine.reroute(before, now, mix, Options())
            assert np.array_equal(before.routes.egress, kept)
            assert after.jobs_digest == mix.digest(now)
            before = PreviousRoutes(now, mix, after)

    on_processors(count, changed)


def test_engines_beside_each_other_are_rated_the_same() -> None:
    fabric = load_fabric("torus:4x4,hosts=2")
    mix = synthetic_mix(fabric, 1)
    one, many = (on_processors(n, lambda: rate_all(fabric, mix, None)) for n in (1, 3))
    assert one.unserved == many.unserved != ()
    for pair in zip(one.engines, many.engines, strict=True):
        assert len({json.dumps(rated.json() | {"seconds": 0}) for rated in pair}) == 1
        assert np.array_equal(*(rated.routes.egress for rated in pair))


@pytest.mark.parametrize("count", (1, 2))
def test_the_result_or_the_exception_is_handed_over(count: int) -> None:
    with patch.object(beside, "processors", lambda: count):
        with beside.beside(lambda: 7) as result:
            assert result() == 7
        with beside.beside(lambda: 1 // 0) as result, pytest.raises(ZeroDivisionError):
            result()


def test_the_block_does_not_end_before_the_work() -> None:
    done, go = threading.Event(), threading.Event()

    def work() -> None:
        go.wait(60)
        done.set()

    with (
        patch.object(beside, "processors", lambda: 2),
        pytest.raises(KeyError),
        beside.beside(work),
    ):
        go.set()
        raise KeyError
    assert done.is_set()


@pytest.mark.parametrize("count", (1, 2))
def test_processor_seconds_include_those_of_the_second_processor(count: int) -> None:
    def work() -> None:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    with patch.object(beside, "processors", lambda: count):
        began = beside.processor_seconds()
        with beside.second_processor() as second:
            works = [second.start(work) for _ in range(2)]
            for each in works:
                each()
        assert beside.processor_seconds() - began >= 0.1


@pytest.mark.parametrize("count", (1, 3))
def test_workers_begin_in_order_and_drop_what_has_not_begun(count: int) -> None:
    begun, go = list[int](), threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        go.wait(60)

    with (
        patch.object(beside, "processors", lambda: count),
        pytest.raises(KeyError),
        beside.workers() as pool,
    ):
        works = [pool.submit(work, number) for number in range(9)]
        while len(begun) < count:
            time.sleep(0.001)
        works[-1].add_done_callback(lambda _: go.set())  # called where it is dropped
        raise KeyError
    assert sorted(begun[:count]) == list(range(count))
    assert works[-1].cancelled()
