"""Routes on trial: what ports count follows the routes in force, or does not."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import mannwhitneyu

from sar_agent.agent.build import build_agent
from sar_agent.agent.decide import Reason
from sar_agent.agent.history import History, Row
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.trial_state import SavedTrial
from sar_agent.config.counters import CountersConfig
from sar_agent.counters import PortReadings, WindowLeftOut
from sar_agent.counters.ratio_interval import outermost, ratio_interval
from sar_agent.counters.steady_windows import SteadySpans
from sar_agent.errors import CheckFailed
from sar_agent.fabric.model import F64
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from tests.fake_opensm import job
from tests.unit.test_counted_weights import JOBS
from tests.unit.test_counters import SECONDS, readings
from tests.unit.test_loop import World

LENGTH = 0.02
"""Seconds of a window."""


class Counting:
    """Ports that count what the jobs send over the routes in force; `fixed` is what links carry
    instead, whatever the routes."""

    def __init__(self, world: Trying) -> None:
        self.world, self.number = world, 0
        self.heavy: frozenset[str] = frozenset()
        self.fixed: F64 | None = None
        self.away = ""
        self.random = np.random.default_rng(1)

    def read(self) -> PortReadings:
        if self.away:
            raise WindowLeftOut(self.away)
        self.number += 1
        world, agent = self.world, self.world.agent
        fabric, routes = world.fabric, agent.installed.last_read
        assert routes is not None
        mix = agent.observer.jobs_on(fabric).mix
        weights = {j.id: 1.0 if j.id in self.heavy else 0.06 for j in mix.jobs}
        true = JobMix.of(replace(j, weight=weights[j.id]) for j in mix.jobs)
        share = traffic_of(fabric, true, routes.routes).load * 0.2
        if self.fixed is not None:
            share = self.fixed
        share = share * (1 + 0.02 * self.random.random(len(share)))
        hosts = np.zeros(fabric.terminals)
        for j in true.jobs:
            hosts[np.asarray(j.terminals)] = 0.9 * weights[j.id]
        found = readings(fabric, share * LENGTH / SECONDS, hosts * LENGTH / SECONDS)
        ports = len(found.seconds)
        return replace(
            found,
            identity=str(self.number),
            seconds=np.full(ports, LENGTH),
            age=np.zeros(ports),
        )


class Trying(World):
    """An agent that uses weights, on trial. Jobs `heavy` share a link at first."""

    def __init__(self, folder: Path, **counters: object) -> None:
        self.counters = {
            "source": "plugin",
            "weights": "use",
            "trial_windows": 4,
            "weights_smoothing_seconds": 1,
        } | counters
        self.counting = Counting(self)
        super().__init__(folder)
        self.source.records = JOBS
        assert self.once().result is Result.INSTALLED

    def restart(self, topology: str = "") -> object:  # type: ignore[override]
        super().restart(topology)
        settings = CountersConfig.model_validate(self.counters)
        config = self.agent.config.model_copy(update={"counters": settings})
        self.agent = build_agent(config, self.bridge.manager, self.source)
        self.agent.counted.counted.source = self.counting
        return self.agent

    def once(self) -> Report:
        time.sleep(1.5 * LENGTH)
        return super().once()

    def passes(self, until: Callable[[Report], bool]) -> Report:
        for _ in range(20):
            if until(report := self.once()):
                return report
        raise AssertionError((report, self.trial))

    @property
    def trial(self) -> SavedTrial:
        return SavedTrial.model_validate_json((self.folder / "state/trial.json").read_bytes())

    @property
    def tables(self) -> bytes:
        assert self.bridge.tables is not None
        return self.bridge.tables.forwarding.tobytes()

    def row(self, generation: int) -> Row:
        rows = History(self.folder / "state").last(20)
        return next(row for row in rows if row.generation == generation)

    def share_a_link(self) -> None:
        """Two jobs that share a link upwards from the first leaf switch are the heavy ones."""
        traffic = self.agent.page.pages._traffic_of(self.agent.page.pages._snapshot)
        assert traffic is not None
        for c in np.flatnonzero(traffic.fabric.channel_source == 0):
            at = np.flatnonzero(traffic.lists.channel[: traffic.lists.offset[-1]] == c)
            users = np.searchsorted(traffic.lists.offset, at, side="right") - 1
            if len(users) >= 2:
                self.counting.heavy = frozenset(traffic.mix.jobs[int(j)].id for j in users[:2])
                return
        raise AssertionError("four jobs on two links")

    def begin(self) -> None:
        """Until other weights are on trial."""
        self.share_a_link()
        report = self.passes(lambda r: r.result is Result.INSTALLED)
        assert report.reason is Reason.WEIGHTS
        assert self.trial.phase == "running"
        assert len(self.trial.before) == 4


def test_counts_got_better_and_the_routes_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world = Trying(tmp_path)
    world.begin()
    tables, generation = world.tables, world.bridge.generation
    assert world.value("sar_agent_trial_running") == 1
    shown = world.agent.page.pages._snapshot
    assert shown is not None and shown.in_force is not None
    assert shown.in_force["trial"] == f"generation {generation} is on trial: 0 of 4 windows counted"
    world.passes(lambda _: world.trial.phase != "running")
    assert (world.trial.phase, world.tables) == ("stays", tables)
    found = world.trial.interval
    assert found is not None and found.better
    assert found.ratio == pytest.approx(0.53, abs=0.05), "1 and 1 apart from 1/16 and 1/16"
    assert "the routes stay: the fullest link's share" in caplog.text
    assert world.value("sar_agent_trials_total", result="stays") == 1
    assert world.value("sar_agent_trial_running") == 0
    row = world.row(generation)
    assert row.trial and row.trial["verdict"] == "stays" and len(row.trial["after"]) == 4
    assert row.counted and row.counted_after and row.counted_after["same_jobs"] is True
    assert row.counted_after["counted_max"] < 0.7 * row.counted["counted_max"]
    assert world.once().result is Result.NOTHING
    kept = world.agent.counted.trials._spans._spans
    seen = [part for span in kept if isinstance(span.what, tuple) for part in span.what]
    assert seen and all(sys.getsizeof(part) < 200 for part in seen), (
        "of thousands of moments, not the jobs themselves are kept"
    )


def test_counts_did_not_get_better_and_the_routes_go_back(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    first, levels = world.tables, dict(world.agent.counted.levels.levels)
    world.counting.fixed = np.full(world.fabric.channels, 0.2)
    world.begin()
    tried, generation = world.tables, world.bridge.generation
    assert tried != first
    report = world.passes(lambda r: r.reason is Reason.TRIAL)
    assert report.result is Result.INSTALLED
    assert world.tables == first
    assert world.agent.counted.levels.levels == levels
    assert world.bridge.generation == generation + 1, "a plan of its own, under a number of its own"
    assert world.trial.phase == "went_back"
    tried_row, back_row = world.row(generation), world.row(generation + 1)
    assert tried_row.trial and tried_row.trial["verdict"] == "went_back"
    assert tried_row.trial["low"] < 1 < tried_row.trial["high"]
    assert (back_row.reason, back_row.transition[:1]) != ("", "")
    assert "counts did not get better" in back_row.why and back_row.entries_changed
    world.agent.counted.levels.interval = 0
    for _ in range(6):
        assert world.once().result is Result.NOTHING, "nothing has changed, so nothing is tried"
    assert world.value("sar_agent_trials_total", result="went_back") == 1


def test_a_restart_in_the_middle_goes_on(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.counting.fixed = np.full(world.fabric.channels, 0.2)
    first = world.tables
    world.begin()
    world.passes(lambda _: len(world.trial.after) == 2)
    before = world.trial
    world.restart()
    assert world.once().result is Result.NOTHING
    assert world.trial.before == before.before
    assert world.trial.after[:2] == before.after
    report = world.passes(lambda r: r.reason is Reason.TRIAL)
    assert report.result is Result.INSTALLED
    assert (world.tables, len(world.trial.after)) == (first, 4)


def test_a_restart_after_the_verdict_goes_back(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.counting.fixed = np.full(world.fabric.channels, 0.2)
    first = world.tables
    world.begin()
    world.bridge.refuse = ["not now"]
    report = world.passes(lambda r: r.reason is Reason.TRIAL)
    assert report.result is Result.FAILED
    assert world.trial.phase == "going_back"
    world.restart()
    world.passes(lambda r: r.result is Result.INSTALLED)
    assert world.tables == first
    assert world.trial.phase == "went_back"


def test_a_way_back_that_waits_is_not_the_plan_for_other_jobs(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.counting.fixed = np.full(world.fabric.channels, 0.2)
    world.begin()
    world.bridge.refuse = ["not now"] * 2
    results = [world.passes(lambda r: r.reason is Reason.TRIAL).result for _ in range(3)]
    assert results == [Result.FAILED, Result.FAILED, Result.WAITING]
    world.source.records = (*JOBS, job("9", "n009", "n013"), job("10", "n010", "n014"))
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.JOBS)
    fresh = world.agent.planner.last
    assert fresh is not None and fresh.routes.jobs_digest == fresh.mix.digest(fresh.fabric)
    kept = world.agent.installed.generations.read(world.trial.earlier)
    assert not np.array_equal(world.bridge.tables.forwarding, kept.forwarding)  # type: ignore[union-attr]


def test_opensm_restarts_in_the_middle(tmp_path: Path) -> None:
    """It starts with the routes on trial, which it has as `routes.sar`."""
    world = Trying(tmp_path)
    world.begin()
    tables = world.tables
    world.passes(lambda _: len(world.trial.after) == 1)
    world.bridge.start_again()
    world.counting.away = "OpenSM's PerfMgr has read no port yet"
    assert world.once().result is Result.NOTHING
    world.counting.away = ""
    world.passes(lambda _: world.trial.phase != "running")
    assert (world.trial.phase, world.tables) == ("stays", tables)


def test_another_engine_in_the_middle_ends_it(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.begin()
    world.bridge.fall_back()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FALLBACK)
    assert world.trial.phase == "undecided"
    assert "other routes are in force" in world.trial.why


def test_a_dead_cable_in_the_middle_ends_it(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.begin()
    generation = world.bridge.generation
    world.cut()
    world.bridge.fabric = world.fabric
    world.bridge.fall_back()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FALLBACK)
    assert world.trial.phase == "undecided"
    assert "cables or switches changed" in world.trial.why
    trial = world.row(generation).trial
    assert trial and trial["verdict"] == "undecided"
    assert world.value("sar_agent_trials_total", result="undecided") == 1


def test_a_job_that_ends_ends_it_and_one_that_comes_and_goes_does_not(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.agent.config = world.agent.config.model_copy(
        update={
            "agent": world.agent.config.agent.model_copy(update={"min_job_age_seconds": 1000.0})
        }
    )
    world.begin()
    world.source.records = (*JOBS, job("9", "n001", "n005", start=time.time()))
    world.once()
    world.once()
    assert world.trial.phase == "running"
    world.source.records = JOBS
    world.once()
    left_out = world.trial.other_jobs
    assert left_out >= 2, "a window with another job is left out"
    assert "because jobs or routes changed meanwhile" in world.trial.words()
    world.once()
    assert world.trial.other_jobs == left_out
    world.source.records = (*JOBS[:3], job("77", *JOBS[3].hosts))
    assert world.once().result is Result.NOTHING, "another job on the same hosts"
    assert world.trial.phase == "undecided"
    assert "one of its jobs ended" in world.trial.why


def test_without_windows_it_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Trying(tmp_path)
    first = world.tables
    world.begin()
    world.counting.away = "OpenSM's PerfMgr is off"
    monkeypatch.setattr("sar_agent.agent.trials.time.time", lambda: world.trial.until + 1)
    report = world.passes(lambda r: r.reason is Reason.TRIAL)
    assert "too few windows could be compared: 0 of 4 windows counted" in report.sentence
    assert world.tables == first


def test_a_way_back_that_fails_thrice_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Trying(tmp_path)
    world.counting.fixed = np.full(world.fabric.channels, 0.2)
    world.begin()
    tried = world.tables
    levels = dict(world.agent.counted.levels.levels)

    def fails(*_: object) -> None:
        raise CheckFailed("a loop")

    monkeypatch.setattr(world.agent.planner, "plan", fails)
    monkeypatch.setattr(world.agent.backoff, "wait", lambda _: 0.0)
    world.passes(lambda _: world.trial.phase == "undecided")
    assert "the way back failed 3 times" in world.trial.why
    assert (world.tables, world.agent.counted.levels.levels) == (tried, levels)
    assert world.once().result is Result.NOTHING


def test_an_earlier_generation_that_is_gone_is_not_gone_back_to(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.counting.fixed = np.full(world.fabric.channels, 0.2)
    world.begin()
    tried = world.tables
    (tmp_path / f"state/generations/{world.trial.earlier}.sar").unlink()
    world.passes(lambda _: world.trial.phase == "undecided")
    assert "the way back failed" in world.trial.why
    assert world.tables == tried


def test_a_reroute_that_cannot_be_judged_is_not_tried(tmp_path: Path) -> None:
    """Too few windows before: other weights wait for them."""
    world = Trying(tmp_path)
    world.share_a_link()
    for _ in range(3):
        assert world.once().result is Result.NOTHING
    assert not (tmp_path / "state/trial.json").exists()
    world.restart()
    for _ in range(3):
        assert world.once().result is Result.NOTHING, "the windows before are counted again"


def test_an_install_that_fails_begins_no_trial(tmp_path: Path) -> None:
    world = Trying(tmp_path)
    world.share_a_link()
    world.bridge.refuse = ["no"] * 9
    world.passes(lambda r: r.result is Result.FAILED)
    assert not (tmp_path / "state/trial.json").exists()
    assert world.value("sar_agent_trial_running") == 0


@pytest.mark.parametrize("content", ["", "{", '{"phase": "running"}', "\x00\xff"])
def test_a_broken_file_is_no_trial(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Trying(tmp_path)
    world.begin()
    tables = world.tables
    (tmp_path / "state/trial.json").write_text(content)
    world.restart()
    assert "it is no trial of ours" in caplog.text
    assert world.once().result is Result.NOTHING
    assert world.tables == tables


def test_trials_off_change_nothing(tmp_path: Path) -> None:
    world = Trying(tmp_path, trial_windows=0)
    world.share_a_link()
    report = world.passes(lambda r: r.result is Result.INSTALLED)
    assert report.reason is Reason.WEIGHTS
    assert not (tmp_path / "state/trial.json").exists()
    world.passes(lambda _: world.row(world.bridge.generation).counted_after is not None)
    json.dumps(world.row(world.bridge.generation).counted_after, allow_nan=False)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"trial_windows": 3, "source": "plugin"}, "trial_windows = 3 is too few"),
        ({"trial_windows": 6}, "trial_windows needs counters; set source"),
        ({"trial_windows": 101, "source": "plugin"}, "less than or equal to 100"),
        ({"trial_windows": 6, "source": "plugin", "trial_measure": "bytes"}, "'load' or 'waits'"),
    ],
)
def test_settings_that_cannot_be(keys: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        CountersConfig.model_validate(keys)


def test_the_interval_is_that_of_mann_and_whitney() -> None:
    """A ratio is inside where their exact test, of values so scaled, does not reject it."""
    random = np.random.default_rng(3)
    for before, after in ((4, 4), (4, 9), (6, 5), (8, 8)):
        old, new = np.exp(random.normal(size=before)), np.exp(random.normal(size=after) - 1)
        found = ratio_interval(old.tolist(), new.tolist())
        assert found is not None and found.confidence >= 0.95
        for ratio, inside in (
            (found.low * 0.999, False),
            (found.low * 1.001, True),
            (found.high * 0.999, True),
            (found.high * 1.001, False),
        ):
            p = mannwhitneyu(new / ratio, old, method="exact").pvalue
            assert (p > 0.05) == inside, (before, after, ratio, p)
    assert ratio_interval([1.0] * 3, [2.0] * 3) is None
    assert outermost(4, 4)[1] == pytest.approx(1 / 70)


def test_where_nothing_changes_routes_rarely_stay() -> None:
    random = np.random.default_rng(4)
    draws = random.lognormal(size=(4000, 12)).tolist()
    kept = [ratio_interval(one[:6], one[6:]) for one in draws]
    assert np.mean([bool(one and one.better) for one in kept]) < 0.035


def test_nothing_before_and_something_after() -> None:
    assert ratio_interval([0.0] * 4, [0.0] * 4) == ratio_interval([1.0] * 4, [1.0] * 4)
    found = ratio_interval([0.0] * 4, [1.0] * 4)
    assert found is not None and not found.better


def test_what_held_all_the_time() -> None:
    spans = SteadySpans()
    for now, what in ((0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, None), (5, "b"), (6, "b")):
        spans.add(now, what)
    assert spans.over(0, 1) == "a"
    assert spans.over(0.5, 1.5) is None, "it changed at some time after 1"
    assert spans.over(1.5, 3) is None
    assert spans.over(2, 3) == "b"
    assert spans.over(2.5, 5.5) is None, "not known in between"
    assert spans.over(5, 6) == "b"
    assert spans.over(-1, 0) is None
