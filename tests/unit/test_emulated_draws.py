"""Rows *emulated*: what a busy machine measured is not counted; their names alone measure them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sar_lab.research.papers.claims import order
from sar_lab.research.papers.emulated import EmulatedDraw, EmulatedTimes, slower
from sar_lab.research.papers.emulated_update import EVERY, EmulatedStream, claims_of
from sar_lab.research.papers.measured import NotMeasured, measured
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.registry import EMULATED, Experiment
from sar_lab.research.papers.result_store import run_row, run_rows
from tests.worlds.command_line import sar_lab

machine_is_quiet = False


def draw(slow: float, fast: float, idle: float = 0.5) -> EmulatedDraw:
    times = (EmulatedTimes("a", slow, idle), EmulatedTimes("b", fast, 0.5))
    return EmulatedDraw("xgft:2;4,4;1,2", 16, "ring", 2.0, 5, "2 processors", "2026-11-28", times)


def test_an_order_is_judged_by_the_draws_that_count() -> None:
    held = slower([draw(3, 2), draw(1, 2, idle=0.24), draw(0, 2)], "a", "b", "a slower")
    assert (held.holds, held.ours) == (True, "1.50 times, 1 of 3 counted")
    assert slower([draw(1, 2)], "a", "b", "a slower").holds is False
    assert slower([draw(3, 2), draw(1, 2)], "a", "b", "they disagree").holds is None
    assert slower([draw(3, 2, idle=0.1)], "a", "b", "busy").holds is None


def stream(paths: str, idle: float = 0.5, hole: float = 20.0) -> EmulatedStream:
    """A cable for each of three paths, thirty samples each, of which one has `hole` Mbit/s."""
    samples = [(20.0, 0.0) if cable == "1" else (0.0, 20.0) for cable in paths for _ in range(30)]
    samples[31] = (hole * samples[31][0] / 20, hole * samples[31][1] / 20)
    ends = [EVERY * (k + 1) for k in range(len(samples))]
    changes = [30 * EVERY, 60 * EVERY]
    return EmulatedStream(ends, samples, changes, idle, 0, 0, "2 processors", "2026-11-28", "")


def test_a_stream_is_judged_by_where_it_goes_and_by_its_lowest_sample() -> None:
    assert stream("121").cables() == [{0}, {1}, {0}]
    assert [claim.holds for claim in claims_of([stream("121"), stream("122")])] == [True, True]
    assert [claim.holds for claim in claims_of([stream("121"), stream("111")])] == [False, True]
    assert [claim.holds for claim in claims_of([stream("121", hole=15)])] == [True, False]
    assert [claim.holds for claim in claims_of([])] == [None, None]
    assert not stream("121", idle=0.2).counted


@measured
def timed(seed: int) -> float:
    assert machine_is_quiet, "only the row's name measures"
    return 1.5


def run(seeds: Sequence[int]) -> Outcome:
    times = [timed(seed) for seed in seeds]
    return Outcome([order("slow", all(each > 1 for each in times))])


def test_an_emulated_row_is_judged_from_its_record_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Experiment("timed", "here", EMULATED, "x", 2, run)
    assert list(run_rows([(row, [0, 1])], tmp_path, False, 1, recorded=True)) == []
    assert not (tmp_path / "draws").exists()
    monkeypatch.setattr(f"{__name__}.machine_is_quiet", True)
    first = run_row(row, [0, 1], tmp_path)
    assert first["ours"]["claims"][0]["holds"]
    monkeypatch.setattr(f"{__name__}.machine_is_quiet", False)
    [again] = run_rows([(row, [0, 1])], tmp_path, True, 1, fresh=True, recorded=True)
    assert again["ours"] == first["ours"]
    with pytest.raises(NotMeasured, match=r"timed\(2\)"):
        run_row(row, [0, 1, 2], tmp_path, recorded=True)


def test_a_check_of_a_row_without_a_record_says_how_to_measure_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sar_lab.research.papers.result_store.PAGES", tmp_path)
    done = sar_lab("lab", "run", "sar-fig9-emulated", "--check", "--judge", "--out", tmp_path)
    assert done.returncode == 0 and "as in the repository" not in done.stdout
    assert done.stderr == (
        "sar-fig9-emulated: not measured here; `sar-lab lab run sar-fig9-emulated` does, "
        "as root on a quiet machine\n"
    )
