"""Counted weights outlive the agent and, by user and name, the jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.outcome import Result
from sar_agent.agent.weight_store import SavedWeights, WeightStore
from sar_agent.counters.job_weights import JobWeights
from sar_agent.counters.weight_levels import WeightLevels
from sar_agent.counters.weight_priors import MOST_PRIORS, WeightPriors
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.slurm.squeue import parse_poll
from tests.unit.test_counted_weights import JOBS
from tests.unit.test_trials import Trying


def named(world: Trying) -> None:
    """Each job has a user and a name of its own."""
    world.source.records = tuple(j._replace(user="anna", name=f"run{j.id}") for j in JOBS)


def saved(world: Trying) -> SavedWeights:
    return SavedWeights.model_validate_json((world.folder / "state/weights.json").read_bytes())


def weigh(world: Trying) -> dict[str, float]:
    """Until routes are made for counted weights."""
    named(world)
    world.share_a_link()
    report = world.passes(lambda r: r.reason is Reason.WEIGHTS)
    assert report.result is Result.INSTALLED
    world.once()
    return dict(world.agent.counted.levels.weights)


def test_weights_outlive_a_restart(tmp_path: Path) -> None:
    world = Trying(tmp_path, trial_windows=0)
    weights = weigh(world)
    assert weights, "two jobs have less than full speed"
    smoothed = saved(world).jobs
    generation = world.bridge.generation
    world.restart()
    world.counting.away = "no counters yet"
    assert world.once().result is Result.NOTHING
    assert world.agent.counted.levels.weights == weights
    assert world.agent.counted.counted.weights.weights == smoothed
    mix = world.agent.page._mix
    assert mix is not None and {j.id: j.weight for j in mix.jobs if j.weight < 1} == weights
    assert world.bridge.generation == generation


def test_a_new_job_starts_with_what_its_like_has_sent(tmp_path: Path) -> None:
    world = Trying(tmp_path, trial_windows=0)
    weights = weigh(world)
    light = next(j for j in JOBS if j.id in weights)
    others = tuple(r for r in world.source.records if r.id != light.id)
    world.source.records = others
    assert world.once().reason is Reason.JOBS
    prior = {(user, name): weight for user, name, weight in saved(world).priors}
    assert prior[("anna", f"run{light.id}")] < 0.2
    new = light._replace(id="99", user="anna", name=f"run{light.id}")
    stranger = light._replace(id="98", user="bert", name=f"run{light.id}", hosts=("n009", "n013"))
    world.source.records = (*others, new, stranger)
    assert world.once().reason is Reason.JOBS
    mix = world.agent.page._mix
    assert mix is not None
    found = {j.id: j.weight for j in mix.jobs}
    assert found["99"] == weights[light.id]
    assert found["98"] == 1.0, "another user's job of that name is not expected to be alike"


def test_a_user_s_own_weight_is_kept(tmp_path: Path) -> None:
    world = Trying(tmp_path, trial_windows=0)
    weights = weigh(world)
    light = next(j for j in JOBS if j.id in weights)
    others = tuple(r for r in world.source.records if r.id != light.id)
    world.source.records = others
    world.once()
    new = light._replace(id="99", user="anna", name=f"run{light.id}", traffic="weight=1")
    world.source.records = (*others, new)
    world.once()
    assert "99" not in world.agent.counted.levels.levels


@pytest.mark.parametrize("weights", ["off", "observe"])
def test_without_consent(tmp_path: Path, weights: str) -> None:
    """ "observe" counts and keeps, but routes are made for full speed; "off" keeps nothing."""
    store = WeightStore(tmp_path / "state")
    (tmp_path / "state").mkdir()
    old = SavedWeights(jobs={"1": 0.1}, levels={"1": 3}, priors=(("anna", "run1", 0.1),))
    store.save(old)
    world = Trying(tmp_path, trial_windows=0, weights=weights)
    named(world)
    world.once()
    world.once()
    assert world.agent.counted.levels.levels == {}
    if weights == "off":
        assert saved(world) == old
    else:
        assert set(saved(world).jobs) == {"1", "2", "3", "4"}
        assert saved(world).priors == old.priors


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        '{"jobs": {"1": -1}}',
        '{"jobs": {"1": NaN}}',
        '{"levels": {"1": 9}}',
        '{"priors": [["a", "b"]]}',
        '{"other": 1}',
        "\x00\xff",
    ],
)
def test_a_broken_file_is_counted_again(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = WeightStore(tmp_path)
    store.path.write_text(content)
    assert store.load() == SavedWeights()
    assert "weights are counted again" in caplog.text


def test_priors_are_bounded_and_the_newest_stay() -> None:
    priors = WeightPriors()
    for number in range(MOST_PRIORS + 10):
        priors.learn("anna", f"job{number}", 0.5)
    assert len(priors.saved()) == MOST_PRIORS
    assert priors.of("anna", "job9") is None and priors.of("anna", "job10") == 0.5
    priors.learn("anna", "job10", 0.1)
    assert priors.of("anna", "job10") == pytest.approx(0.3)
    priors.learn("anna", "one more", 1.0)
    assert priors.of("anna", "job10") is not None, "it ended a moment ago"
    priors.learn("", "nobody's", 1.0)
    priors.learn("anna", "", 1.0)
    assert priors.of("", "nobody's") is None and priors.of("anna", "") is None
    again = WeightPriors(priors.saved())
    assert again.saved() == priors.saved()
    assert json.loads(SavedWeights(priors=priors.saved()).model_dump_json())["priors"]


def test_a_level_that_was_expected_is_left_like_any_other() -> None:
    levels = WeightLevels(0.0)
    levels.start({"1": 0.25, "2": 1.0})
    assert levels.weights == {"1": 0.25}
    levels.start({"1": 1.0})
    assert levels.weights == {"1": 0.25}, "only of jobs without a level"
    assert levels.propose({"1": 0.3}, ["1"]) == {"1": 2}
    assert levels.propose({"1": 0.9}, ["1"]) == {}


def test_an_expected_weight_is_smoothed_like_a_counted_one() -> None:
    weights = JobWeights(600.0)
    weights.expect("1", 0.2)
    weights.expect("1", 0.9)
    assert weights.weights == {"1": 0.2}
    assert JobMix((make_job("1", [0, 1]),)).jobs


def test_names_of_jobs_are_read_and_may_hold_anything() -> None:
    line = "m|7|RUNNING|n[1-2]|batch|anna|acct|2|0|a|b|1000|7"
    for name in ("run", "a|b|c", "x\ny", "m", "", "~"):
        (record,) = parse_poll(f"{line}|m~{name}\n", "m").records
        assert (record.id, record.name, record.uid) == ("7", name, 1000)
    (record,) = parse_poll(line + "\n", "m").records
    assert record.name == "", "as squeue of another agent would print it"
    (record,) = parse_poll(f"{line}|m~{'x' * 999}\n", "m").records
    assert len(record.name) == 128
