"""Answers that once named no remedy, or a wrong cause: each is a true sentence with the way out."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from sar_agent.errors import Unavailable
from sar_agent.util import kernel_cache
from sar_agent.util.lock_file import ANOTHER, Lock
from tests.worlds.command_line import TREE, sar_agent

JOB = "7|RUNNING|n[001,005]|p|u|a|2|2026-01-01T00:00:00|\n"


def test_place_without_slurm_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = tmp_path / "queue"
    queue.write_text(JOB)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = sar_agent("place", "-N", "2", "--fabric", TREE, "--jobs", queue)
    assert done.returncode == 1 and "sinfo cannot be started" in done.stderr
    assert "as --nodes" in done.stderr and len(done.stderr) < 250


def test_a_second_agent_is_told_of_the_first(tmp_path: Path) -> None:
    with (
        Lock(tmp_path, "agent.lock", says=ANOTHER),
        pytest.raises(Unavailable, match=r"^another agent runs, stop one of them .* process \d+"),
        Lock(tmp_path, "agent.lock", 0.0, says=ANOTHER),
    ):
        pass


def test_kernels_that_cannot_be_kept_name_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(folder: Path, seed: Path | None) -> Path:
        raise OSError(30, "Read-only file system", str(folder))

    monkeypatch.setattr(kernel_cache, "_used", refused)
    with caplog.at_level(logging.WARNING):
        assert kernel_cache.use_cache() is None
    assert "unless NUMBA_CACHE_DIR names a folder where you may write" in caplog.text


def test_one_dump_given_twice_is_called_so(tmp_path: Path) -> None:
    dump = tmp_path / "counters"
    dump.write_text(
        "# Port extended counters: Lid 1 port 1 (CapMask: 0x5300)\n"
        "PortXmitData:....................1000\nPortRcvData:.....................1000\n"
    )
    done = sar_agent("cables", "--fabric", TREE, "--counters", dump, "--counters", dump)
    assert done.returncode == 2 and "are the same dump" in done.stderr


@pytest.mark.parametrize("named", ["8", "8_2"])
def test_tasks_that_wait_in_one_line_are_said_to_wait(tmp_path: Path, named: str) -> None:
    queue = tmp_path / "queue"
    queue.write_text(f"{JOB}8_[1-4%2]|PENDING||p|u|a|2|N/A|\n")
    done = sar_agent("rank-order", named, "--fabric", TREE, "--jobs", queue)
    assert done.returncode == 2 and "job 8_[1-4%2] is pending, not running" in done.stderr
    assert "did you mean 7" not in done.stderr
