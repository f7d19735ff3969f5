"""Counted weights do not swing: the two bounds of `counters/weight_levels.py`, on random sequences
and against an adversary who answers each change of routes with other traffic."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field

import pytest

from sar_agent.counters.weight_levels import LEAST, RETRY, WeightLevels
from tests.examples import share

INTERVAL = 1800.0


@dataclass
class Run:
    """What happened in one sequence."""

    used: list[float] = field(default_factory=list)
    """Times of reroutes."""
    tried: list[float] = field(default_factory=list)
    changes: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """By job: direction of each change of its level, and its weight then, in powers of two."""


def run_sequence(seed: int, steady: float | None = None) -> Run:
    """Six hours of windows of a few jobs, some of which come and go. Weights follow one of several
    habits; half of the proposals gain enough. `steady`: all weights stay within this factor."""
    chance = random.Random(seed)
    levels, now, run = WeightLevels(INTERVAL), 0.0, Run()
    jobs = [str(j) for j in range(chance.randint(1, 6))]
    habit = chance.choice(("noise", "flip", "opposite", "steps", "edge"))
    base = {job: 2 ** -chance.uniform(0, LEAST + 1) for job in jobs}
    while now < 6 * 3600:
        now += chance.choice((30.0, 180.0, 600.0))
        running = [job for job in jobs if steady or chance.random() < 0.97]
        measured = {}
        for job in running:
            here = levels.weights.get(job, 1.0)
            weight = {
                "noise": chance.random(),
                "flip": chance.choice((0.01, 1.0)),
                "opposite": 1.0 if here < 0.5 else 0.01,  # traffic that answers our routes
                "steps": 2 ** -float(chance.randint(0, LEAST)),
                "edge": here * 2 ** chance.choice((-0.76, 0.76)),
            }[habit]
            if steady:
                weight = base[job] * steady ** chance.uniform(-0.5, 0.5)
            if chance.random() < 0.9:
                measured[job] = weight
        proposed = levels.propose(measured, running)
        assert set(proposed) <= set(running)
        assert all(1 <= level <= LEAST for level in proposed.values())
        if proposed == levels.levels or not levels.due(now):
            continue
        levels.tried(now)
        run.tried.append(now)
        if chance.random() < 0.5:
            continue
        for job in set(running) & measured.keys():
            step = proposed.get(job, 0) - levels.levels.get(job, 0)
            if step:
                place = -math.log2(min(1.0, max(measured[job], 2.0**-LEAST)))
                run.changes.setdefault(job, []).append((step, place))
        for job in set(jobs) - set(running):
            run.changes.pop(job, None)  # it has ended; the next one of that number is another job
        levels.use(proposed)
        levels.used(now)
        run.used.append(now)
    return run


def check(run: Run) -> None:
    """Both bounds."""
    for i, begin in enumerate(run.used):
        for j in range(i, len(run.used)):
            seconds = run.used[j] - begin
            assert j - i + 1 <= 1 + seconds / INTERVAL
    pauses = [b - a for a, b in itertools.pairwise(run.tried)]
    assert all(pause >= RETRY * INTERVAL for pause in pauses)


MANY = pytest.mark.parametrize(
    "sequences", [share(400), pytest.param(10_000, marks=pytest.mark.long)], ids=["some", "many"]
)


@MANY
def test_reroutes_because_of_weights_are_rare_whatever_is_counted(sequences: int) -> None:
    total = 0
    for seed in range(sequences):
        run = run_sequence(seed)
        check(run)
        total += len(run.used)
    assert total, "no sequence changed anything"


@MANY
def test_a_job_within_a_factor_of_root_two_never_goes_back(sequences: int) -> None:
    moved = 0
    for seed in range(sequences):
        run = run_sequence(seed, steady=math.sqrt(2))
        check(run)
        for changes in run.changes.values():
            signs = {step > 0 for step, _ in changes}
            assert len(signs) == 1, changes
            moved += 1
    assert moved


@MANY
def test_between_opposite_changes_the_weight_has_moved_by_root_two(sequences: int) -> None:
    opposite = 0
    for seed in range(sequences):
        for changes in run_sequence(seed).changes.values():
            for (first, place), (second, other) in itertools.pairwise(changes):
                if (first > 0) != (second > 0):
                    opposite += 1
                    assert abs(other - place) >= 0.5 - 1e-9, changes
    assert opposite, "no job went back, so nothing was tested"


def test_levels_by_hand() -> None:
    levels = WeightLevels(INTERVAL)
    assert levels.propose({"1": 0.6}, ["1"]) == {}, "within the band of full speed"
    assert levels.propose({"1": 0.5}, ["1"]) == {"1": 1}
    assert levels.propose({"1": 0.0}, ["1"]) == {"1": LEAST}
    levels.use({"1": 1})
    assert levels.weights == {"1": 0.5}
    assert levels.propose({"1": 0.8}, ["1"]) == {"1": 1}
    assert levels.propose({"1": 0.9}, ["1"]) == {}
    assert levels.propose({}, ["1"]) == {"1": 1}, "what is not measured stays"
    assert levels.propose({"1": 0.1}, ["2"]) == {}, "ended"
    assert levels.due(0.0)
    levels.used(0.0)
    assert not levels.due(INTERVAL - 1) and levels.due(INTERVAL)
