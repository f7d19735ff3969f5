"""A disk that is really full: small file systems of our own, so root is needed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sar_agent.agent.loop import Result
from tests.unit.test_loop import JOBS, World

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    mounted: list[Path] = []

    def mount(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def test_state_and_history(
    tmp_path: Path, small: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = small("state")
    world = World(tmp_path)
    world.once()
    filler = fill(folder)
    world.source.records = JOBS[:1]
    assert world.once().result is Result.INSTALLED
    assert world.once().result is Result.NOTHING, "it knows what it installed"
    assert "No space left" in caplog.text and "kept in memory" in caplog.text
    assert len(world.agent.history.last(9)) == 1
    filler.unlink()
    world.source.records = JOBS
    assert world.once().result is Result.INSTALLED
    assert world.restart().pass_once().result is Result.NOTHING
    assert len(world.agent.history.last(9)) == 2


def test_routes_and_map(tmp_path: Path, small: Callable[[str], Path]) -> None:
    folder = small("run")
    world = World(tmp_path)
    world.once()
    good = (folder / "routes.sar").read_bytes()
    old_map = (folder / "job-to-terminal.map").read_bytes()
    filler = fill(folder)
    world.source.records = JOBS[:1]
    report = world.once()
    assert report.result is Result.FAILED and "No space left" in report.sentence
    assert (folder / "routes.sar").read_bytes() == good
    assert (folder / "job-to-terminal.map").read_bytes() == old_map
    assert world.bridge.generation == 1
    assert not [path for path in folder.iterdir() if path.name.startswith(".")], "no leftovers"
    filler.unlink()
    assert world.once().result is Result.INSTALLED
    assert (folder / "job-to-terminal.map").read_bytes() != old_map
