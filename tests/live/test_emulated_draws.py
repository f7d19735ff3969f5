"""What the rows *emulated* measure, measured once: packets take the ways of the tables, and the
result says where and when."""

from __future__ import annotations

import pytest

from sar_lab.research.papers.emulated import scattered, wrf
from sar_lab.research.papers.emulated_update import stream
from sar_lab.research.papers.measured import begin
from tests.worlds.live.emulation import possible as possible

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def new_draws() -> None:
    begin({})


def test_a_stream_follows_the_recorded_tables() -> None:
    found = stream(0, 1.5, 2e7)
    assert not found.lost and len(found.changes) == 2
    before, during, _ = found.cables()
    assert len(before) == len(during) == 1 and before != during
    assert found.dropped == 0
    assert found.machine and found.date


@pytest.mark.long
def test_programs_are_timed_on_all_tables() -> None:
    placed, rows = scattered(0, 1, 8e6), wrf(4, 0, 1, 8e6)
    assert [each.tables for each in placed.times] == ["ftree", "sar", "sar-plus"]
    assert [each.tables for each in rows.times] == ["dmodk", "rnca-d"]
    assert (placed.hosts, rows.hosts) == (48, 64)
    for each in (*placed.times, *rows.times):
        assert each.median == 0 or each.median >= 0.9, "no faster than the busiest port alone"
