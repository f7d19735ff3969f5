"""A disk that is really full: small file systems of our own, so root is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.outcome import Result
from sar_agent.events.inbox import JobReport
from tests.worlds.agent_world import JOBS, World

ROOT = Path(__file__).parents[2]
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
        options = "size=256k,nr_inodes=200"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        # Lazily: agents that a test has not ended keep a file of subscribers open.
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_names(folder: Path) -> None:
    """No inode is left, whatever room there is."""
    try:
        for number in range(10_000):
            (folder / f"filler{number}").touch()
    except OSError:
        return
    raise AssertionError("it never was full")


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
    assert len(world.agent.committer.decisions.history.last(9)) == 1
    filler.unlink()
    world.source.records = JOBS
    assert world.once().result is Result.INSTALLED
    assert world.restart().pass_once().result is Result.NOTHING
    assert len(world.agent.committer.decisions.history.last(9)) == 2


@pytest.mark.parametrize("how", [fill, fill_names])
@pytest.mark.parametrize("when", ["at the start", "later"])
def test_a_full_state_disk_stops_no_repair(
    tmp_path: Path,
    small: Callable[[str], Path],
    caplog: pytest.LogCaptureFixture,
    how: Callable[[Path], object],
    when: str,
) -> None:
    """Neither of the fabric nor for jobs that come, and in a process that has just started, too."""
    folder = small("state")
    world = World(tmp_path)
    world.once()
    how(folder)
    if when == "at the start":
        world.restart()
    world.agent.observer.hints.add([JobReport("1", 0, "ring")])
    world.cut()
    world.bridge.fabric = world.fabric
    world.bridge.fall_back()
    assert world.once().reason is Reason.FALLBACK
    assert world.bridge.engine == "sar"
    world.source.records = JOBS[:1]
    assert world.once().result is Result.INSTALLED
    assert world.once().result is Result.NOTHING, "it knows what it installed"
    assert not world.value("sar_agent_unexpected_errors_total", where="pass")
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_full_disk_for_kernels_costs_a_warning_or_is_said(
    tmp_path: Path, small: Callable[[str], Path], when: str
) -> None:
    """The command's result is right, unless there seemed to be enough room ("meanwhile")."""
    folder = small("cache")
    fill(folder)
    (tmp_path / "command.py").write_text(COMMAND)
    done = subprocess.run(
        [sys.executable, "command.py", "double", when],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if when == "meanwhile":
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        (said,) = done.stderr.splitlines()
        assert "compiled kernels cannot be read or written (OSError(28" in said
        assert "; remove the folder, or name another with NUMBA_CACHE_DIR" in said
        return
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    (warning,) = done.stderr.splitlines()
    assert "compiled kernels cannot be kept (No space left on device)" in warning


COMMAND = """
import typer
from sar_agent.commands.program import make_program, run_program
from sar_agent.util import kernel_cache

app = make_program("sar-agent", "")

@app.command()
def double(when: str) -> None:
    if when == "meanwhile":
        kernel_cache.LEAST_BYTES = kernel_cache.LEAST_FILES = 0
    from sar_agent.util.kernels import kernel

    @kernel
    def twice(x):
        return 2 * x

    print(twice(21))

run_program(app)
"""
