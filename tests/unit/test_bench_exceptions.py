"""`tests.bench exceptions`: its rows, its simulated times, and what it calls reached."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS, job_times
from tests.bench import phase_times as phases
from tests.bench.exception_changes import LARGE
from tests.bench.exception_rows import BASELINE, FABRICS, MIXES, row_fabric, row_mix, row_name
from tests.bench.exceptions import Row

NAME = "xgft:3;6,6,8;1,6,6"
GOOD = Row("torus:4x4x4", "mix:1", "dfsssp", 1, 1.05, 1, 1.05, 1.05, 1.1, 1, 1, 1, 20, 2, 0.1,
           True, False)  # fmt: skip


def test_the_baseline_has_every_row() -> None:
    kept = json.loads(BASELINE.read_text())
    assert set(kept["rows"]) == {row_name(name, mix) for name in FABRICS for mix in MIXES}
    assert set(kept["large"]) == set(LARGE)


@pytest.mark.parametrize("mix_name", MIXES)
def test_every_mix_keeps_most_hosts_busy_and_shares_none(mix_name: str) -> None:
    fabric = row_fabric(NAME)
    mix = row_mix(fabric, mix_name)
    assert len(set(mix.terminal.tolist())) == len(mix.terminal) > 0.7 * fabric.terminals


def test_jobs_simulated_one_after_the_other_take_as_long_as_alone() -> None:
    fabric = row_fabric(NAME)
    mix = row_mix(fabric, "mix:1")
    routes = load_engine("sar").route(fabric, mix, Options())
    alone = [
        job_times(fabric, JobMix((job,)), routes, PATTERNS["shift"]).time[0] for job in mix.jobs
    ]
    found = phases.phase_times(fabric, mix, routes)
    assert found.alone == pytest.approx(np.mean(alone))
    free = job_times(fabric, mix, routes, PATTERNS["shift-free"]).time
    assert found.free == pytest.approx((free.mean(), free.max()))
    assert not found.sampled


def test_sampled_phases_are_longer_and_without_contention_take_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(phases, "PAIRS", 5_000)
    fabric = row_fabric(NAME)
    mix = row_mix(fabric, "one job")
    found = phases.phase_times(fabric, mix, load_engine("dmodc").route(fabric, mix, Options()))
    assert found.sampled
    assert found.shift == found.free == pytest.approx((1, 1))


def test_a_row_is_reached_only_if_its_phases_and_its_load_are() -> None:
    assert GOOD.reached
    for worse in (
        {"shift": 1.01}, {"free": 1.01}, {"shift_worst": 1.06}, {"free_worst": 1.06},
        {"alltoall": 1.06}, {"load": 1.11}, {"fabric": "dgx-ndr"},
    ):  # fmt: skip
        assert not GOOD._replace(**worse).reached, worse
