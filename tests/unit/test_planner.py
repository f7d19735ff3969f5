"""When the planner holds its routes against a full recomputation."""

from __future__ import annotations

import pytest

from sar_agent.agent import planner
from sar_agent.config.model import AgentConfig, Config
from sar_agent.config.update import UpdateConfig
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, Routes, load_engine

QUIET = 60.0


class Clock:
    """`time`, as far as the planner looks."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(planner, "time", clock)
    return clock


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times at which all routes were computed anew to compare."""
    found: list[float] = []
    engine = load_engine("sar-plus")

    class Counted:
        def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
            found.append(planner.time.monotonic())
            return engine.route(fabric, mix, options)

    monkeypatch.setattr(planner, "load_engine", lambda name: Counted())
    return found


FABRIC = load_fabric("xgft:2;4,4;1,4")
MIXES = [JobMix.of([make_job("1", [0, 4, 8 + n])]) for n in range(2)]


def test_routes_are_tended_once_it_has_been_quiet(clock: Clock, looks: list[float]) -> None:
    tended = planner.Planner(
        Config(agent=AgentConfig(reoptimise_seconds=QUIET)), load_engine("sar-plus")
    )
    for mix in MIXES:
        tended.plan(1, FABRIC, mix)
    assert tended.tend(FABRIC, MIXES[1]) == "" and not looks
    clock.now += QUIET + 1
    tended.tend(FABRIC, MIXES[1])
    assert len(looks) == 1
    clock.now += QUIET + 1
    tended.tend(FABRIC, MIXES[1])
    assert len(looks) == 1, "nothing changed since"


def test_routes_are_tended_even_where_jobs_never_are_quiet(
    clock: Clock, looks: list[float]
) -> None:
    tended = planner.Planner(
        Config(agent=AgentConfig(reoptimise_seconds=QUIET)), load_engine("sar-plus")
    )
    began = clock.now
    for turn in range(25):
        mix = MIXES[turn % 2]
        tended.plan(1, FABRIC, mix)
        clock.now += QUIET / 2
        tended.tend(FABRIC, mix)
    assert len(looks) == 1
    assert planner.BUSY * QUIET <= looks[0] - began <= (planner.BUSY + 1) * QUIET


@pytest.mark.parametrize("engine", ["sar", "sar-plus"])
def test_a_cap_on_changed_entries_holds(engine: str) -> None:
    tree = load_fabric("xgft:3;4,4,4;1,4,4")
    mixes = [synthetic_mix(tree, seed) for seed in (1, 2)]

    def second(most: int) -> int:
        config = Config(update=UpdateConfig(max_changed_entries=most))
        plans = planner.Planner(config, load_engine(engine))
        first, then = (plans.plan(n, tree, mix) for n, mix in enumerate(mixes, 1))
        return then.routes.entries_changed(first.routes)

    free = second(0)
    assert free > 100 >= second(100) and second(10 * free) == free
