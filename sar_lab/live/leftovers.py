"""Ends processes that a Slurm daemon of ours left behind: job steps and their tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sar_lab.live.process import wait_until


def end_all(mark: str, seconds: float = 5.0) -> None:
    """SIGKILL every Slurm daemon and job process whose environment has the entry `mark`.

    `mark` contains the path of a scratch directory, so it is unique to us. A shell or editor that
    has it too (to inspect the cluster) is neither a daemon nor a job process, and is not ended.
    Returns when all have ended, or after `seconds` if some are in uninterruptible sleep.
    """

    def none_left() -> bool:
        pids = list(_marked(mark.encode()))
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    wait_until(none_left, seconds)


def _marked(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):  # it ended meanwhile, is a zombie, or another user's
                environment = (entry / "environ").read_bytes().split(b"\0")
                name = (entry / "exe").readlink().name
                in_job = any(item.startswith(b"SLURM_JOB_ID=") for item in environment)
                if mark in environment and (in_job or name.startswith("slurm")):
                    yield int(entry.name)
