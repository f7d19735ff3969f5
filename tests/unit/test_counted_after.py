"""The first window after an install, in the row of the install."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.build import build_agent
from sar_agent.agent.history import History, Row
from sar_agent.agent.outcome import Report, Result
from sar_agent.commands.ask import _line
from sar_agent.config.counters import CountersConfig
from sar_agent.counters import PortReadings
from tests.worlds.agent_world import World
from tests.worlds.counted_fabric import SECONDS, readings
from tests.worlds.fake_opensm import job

JOBS = tuple(job(str(i), f"n00{i}", f"n00{4 + i}") for i in (1, 2, 3))
LENGTH = 0.02
"""Seconds of a window."""


class MockPorts:
    """Ports that have carried `share` of their speed in each window."""

    def __init__(self, world: World) -> None:
        self.world, self.number, self.share = world, 0, 0.2

    def read(self) -> PortReadings:
        self.number += 1
        fabric = self.world.fabric
        part = LENGTH / SECONDS
        found = readings(
            fabric, np.full(fabric.channels, self.share * part), np.zeros(fabric.terminals)
        )
        ports = len(found.seconds)
        return replace(
            found,
            identity=str(self.number),
            seconds=np.full(ports, LENGTH),
            age=np.zeros(ports),
        )


class Counting(World):
    """An agent that has counted two windows on its first routes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.source.records = JOBS
        counters = CountersConfig(source="plugin")
        config = self.agent.config.model_copy(update={"counters": counters})
        self.agent = build_agent(config, self.bridge.manager, self.source)
        self.agent.observers["counters"].source = self.ports = MockPorts(self)
        assert self.once().result is Result.INSTALLED
        assert [self.once().result for _ in range(3)] == 3 * [Result.NOTHING]

    def once(self) -> Report:
        time.sleep(1.5 * LENGTH)
        return super().once()

    def row(self) -> Row:
        """The newest row, after three more windows."""
        for _ in range(3):
            self.once()
        return History(self.folder / "state").last(1)[0]


def test_the_same_jobs_can_be_compared(tmp_path: Path) -> None:
    world = Counting(tmp_path)
    world.bridge.engine = "minhop"
    assert world.once().result is Result.INSTALLED
    world.ports.share = 0.1
    row = world.row()
    assert row.counted and row.counted_after and row.counted_after["same_jobs"] is True
    assert row.counted["counted_max"] == pytest.approx(0.2)
    assert row.counted_after["counted_max"] == pytest.approx(0.1)
    assert ", counted 20.0% → 10.0%" in _line(row) and "other jobs" not in _line(row)
    world.ports.share = 0.3
    assert world.row().counted_after == row.counted_after, "the first window only"
