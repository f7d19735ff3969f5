"""Unexpected errors end neither a pass nor the loop."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent import observe_site
from sar_agent.agent.decide import Reason
from sar_agent.agent.fabric_source import read_fabric
from sar_agent.agent.outcome import Result
from sar_agent.config.model import Config
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.unexpected_errors import UnexpectedErrors
from tests.worlds.agent_world import JOBS, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def counted(world: World, where: str = "pass") -> float:
    return world.value("sar_agent_unexpected_errors_total", where=where) or 0.0


def recursion() -> None:
    recursion()


def raising(error: Exception) -> Any:
    def act(*_: object, **__: object) -> None:
        if isinstance(error, RecursionError):
            recursion()
        raise error

    return act


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left"), RuntimeError(), MemoryError(), RecursionError()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("place", ["observer.observe", "publisher.observation", "planner.plan"])
def test_a_pass_that_fails_is_counted_and_told_once(
    world: World, caplog: pytest.LogCaptureFixture, error: Exception, place: str
) -> None:
    world.once()
    *path, name = place.split(".")
    holder: Any = world.agent
    for step in path:
        holder = getattr(holder, step)
    good = getattr(holder, name)
    setattr(holder, name, raising(error))
    world.source.records = JOBS[:1]
    for _ in range(3):
        report = world.once()
        assert report.result is Result.FAILED and type(error).__name__ in report.sentence
    assert counted(world) == 3
    assert caplog.text.count("Traceback (most recent call last)") == 1
    assert world.bridge.loads == [1]
    setattr(holder, name, good)
    world.cut()
    world.bridge.fabric = world.fabric
    world.bridge.fall_back()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FALLBACK)
    assert world.agent.unexpected.wait("pass") == 0.0


@pytest.mark.parametrize("place", ["source.poll", "read_fabric", "topology"])
def test_a_reader_that_breaks_hides_no_dead_cable(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What was read last does for a repair: of the queue, or of topology.conf."""
    world.restart(topology=str(world.folder / "topology.conf"))
    world.once()
    broken = raising(ValueError("a bug of a parser"))
    if place == "read_fabric":
        monkeypatch.setattr(observe_site, "read_fabric", broken)
    elif place == "topology":
        world.agent.observer.topology.changed = broken  # type: ignore[union-attr]
    else:
        world.agent.observer.source.poll = broken  # type: ignore[method-assign]
    world.cut()
    world.bridge.fabric = world.fabric
    world.bridge.fall_back()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FALLBACK)
    where = {"read_fabric": "fabric", "topology": "topology"}.get(place, "Slurm")
    assert counted(world, f"look at {where}" if where == "Slurm" else f"look at the {where}") == 1


def test_exit_and_interrupt_end_the_process(world: World) -> None:
    for error in (KeyboardInterrupt, SystemExit):
        world.agent.observer.observe = raising(error())  # type: ignore[method-assign,arg-type]
        with pytest.raises(error):
            world.once()


def test_another_error_is_told_again_and_the_same_with_other_numbers_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    metrics = Metrics("0", "install", "sar")
    unexpected = UnexpectedErrors(metrics.unexpected_errors, lambda: now[0])
    for number in range(40):
        unexpected.guard("pass", raising(ValueError(f"row {number}")), None)
    assert caplog.text.count("Traceback") == 1
    assert unexpected.wait("pass") == 60.0
    unexpected.guard("pass", raising(KeyError("other")), None)
    assert caplog.text.count("Traceback") == 2
    assert unexpected.guard("pass", lambda: 7, 0) == 7
    assert unexpected.wait("pass") == 0.0
    unexpected.guard("pass", raising(KeyError("other")), None)
    assert caplog.text.count("Traceback") == 2, "one that comes and goes"
    assert unexpected.wait("pass") == 1.0
    now[0] += 1.5
    assert unexpected.wait("pass") == 0.0


IBNETDISCOVER = """
switchguid=0x10(10)
Switch\t4 "S-0000000000000010"\t# "a" base port 0 lid 1 lmc 0
[1]\t"H-0000000000000020"[1](21)\t# "n1 HCA-1" lid 2 4xEDR

caguid=0x20
Ca\t1 "H-0000000000000020"\t# "n1 HCA-1"
[1](21)\t"S-0000000000000010"[1]\t# lid 2 lmc 0 "a" lid 1 4xEDR
"""


def test_a_full_tmp_hides_no_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text(IBNETDISCOVER)
    real = os.mkdir

    def mkdir(path: Any, *more: Any, **named: Any) -> None:
        if "sar-agent-" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, *more, **named)

    monkeypatch.setattr(os, "mkdir", mkdir)
    config = Config.model_validate(
        {"fabric": {"command": ["cat", str(tmp_path / "text")]}}, strict=False
    )
    fabric = read_fabric(config.fabric)
    assert fabric.digest == read_ibnetdiscover(IBNETDISCOVER).digest
