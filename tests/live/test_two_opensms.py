"""Master and standby, each with its agent: whoever is killed, no entry of any switch changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.process import wait_until
from tests.live.helpers.pair import Pair, pair

pytestmark = pytest.mark.live
JOBS = ("n[001,005,009]", "n[002,006,010]", "n[003-004,013]")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Pair]:
    with pair(tmp_path) as made:
        made.jobs(*JOBS)
        made.one.start_agent()
        made.two.start_agent()
        assert wait_until(made.one.installs, 60), made.one.log()
        assert wait_until(lambda: made.copied(made.one, made.two), 30), made.two.log()
        yield made


def test_the_masters_opensm_dies(two: Pair) -> None:
    generation = two.one.state().generation
    two.one.sm.kill()
    print(two.watch(two.two.installs, 60))
    print(two.one.log(), "\n---\n", two.two.log())
    assert two.two.status().generation_in_force == generation
