"""Ends processes that a Slurm daemon of ours left behind: job steps and their tasks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sar_lab.live.process import wait_until


@contextmanager
def ended_with_this_process(mark: str, folder: Path) -> Iterator[None]:
    """`end_all` at the end. Where this process is killed before (SIGKILL), a child of it does that,
    and removes `folder`."""
    main = "from sar_lab.live.leftovers import end_when_told; end_when_told()"
    child = subprocess.Popen(
        [sys.executable, "-c", main, mark, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # who reads ours need not wait for it
        start_new_session=True,  # Ctrl-C is not for it
    )
    try:
        yield
    finally:
        child.communicate(b"end")


def end_when_told() -> None:
    """The main program of the child. Its standard input ends without a word when its parent was
    killed."""
    mark, folder = sys.argv[1:]
    told = sys.stdin.read()
    end_all(mark)
    if not told:
        shutil.rmtree(folder, ignore_errors=True)


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
