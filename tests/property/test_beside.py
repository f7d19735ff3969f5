"""Work on a second processor changes no byte."""

from __future__ import annotations

import threading
import time
from unittest.mock import patch

import numpy as np
import pytest

from sar_agent.errors import SarError
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, PreviousRoutes
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.util import beside


def on_processors(count: int, work):  # type: ignore[no-untyped-def]
    with patch.object(beside, "processors", lambda: count):
        try:
            return work()
        except SarError as error:
            return type(error), str(error)


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
