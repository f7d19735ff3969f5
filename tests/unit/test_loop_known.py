"""Passes of the agent while it is not known, or changes, what is in force."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.outcome import Result
from sar_agent.formats.routes_file import RoutesFile, read_generation
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fake_opensm import job

OTHERS = (
    job("8", "n003", "n004", "n006", "n012", "n014", "n015"),
    job("9", "n001", "n002", "n005", "n009", "n011", "n013"),
)
"""Jobs that need other exceptions."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_nothing_is_installed_from_what_is_not_confirmed(world: World) -> None:
    """Generation 3 was sent while a switch had not confirmed generation 2, and
    the history said that any mixture was safe."""
    world.once()
    world.bridge.deaf = (0,)
    world.source.records = JOBS[:1]
    report = world.once()
    assert report.result is Result.FAILED and "have not confirmed" in report.sentence
    assert read_generation(world.folder / "run/routes.sar") == 1
    report = world.once()
    assert report.result is Result.LATER and "1 switches have not confirmed" in report.sentence
    assert world.bridge.loads == [1, 2]
    world.source.records = OTHERS
    assert world.bridge.tables and world.bridge.tables.had is not None
    unknown = np.where(world.bridge.tables.had == 0, 0, 254)
    known, world.bridge.tables = world.bridge.tables, replace(world.bridge.tables, had=unknown)
    report = world.once()
    assert report.result is Result.LATER and "not known while switches" in report.sentence
    assert world.bridge.loads == [1, 2]
    assert world.agent.committer.decisions.history.last(1)[0].generation == 0, (
        "nothing was installed"
    )
    world.bridge.tables = known
    world.bridge.confirm()
    assert world.once().result is Result.INSTALLED
    assert world.bridge.generation == read_generation(world.folder / "run/routes.sar") == 3


def test_the_history_tells_what_really_changed(world: World) -> None:
    """Found live: a fallback engine was in force when the load had its turn, and the history
    counted from the tables before."""
    world.once()
    world.source.records = JOBS[:1]
    rewritten: list[RoutesFile] = []

    def fall_back() -> None:
        if not rewritten:
            world.bridge.fall_back()
            assert world.bridge.tables
            rewritten.append(world.bridge.tables)

    world.bridge.on_load = [fall_back]
    assert world.once().result is Result.INSTALLED
    row, now = world.agent.committer.decisions.history.last(1)[0], world.bridge.tables
    assert now and row.generation == world.bridge.generation == 2
    assert row.entries_changed == int((now.forwarding != rewritten[0].forwarding).sum())
