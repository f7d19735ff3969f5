"""What every daemon of the live harness needs: to be there, to start, and to be gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from sar_agent.errors import SarError, Unavailable

_SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def find_program(name: str, package: str) -> str:
    """The program's path; a SarError names the Debian package that brings it."""
    found = shutil.which(name, path=_SBIN)
    if found is None:
        raise SarError(
            f"{name} is not installed: run deploy/install-debian-packages "
            f"(Debian package {package})"
        )
    return found


def wait_until(
    holds: Callable[[], bool],
    seconds: float,
    what: str,
    *,
    alive: Callable[[], bool] = lambda: True,
    last_words: Callable[[], str] = lambda: "",
) -> None:
    """Poll until `holds`; Unavailable says `what` did not happen, or that the process has ended,
    and then the end of its `last_words`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if not alive():
            if holds():
                return
            raise Unavailable(f"{what}: the process ended before that; {last_words()[-1500:]}")
        if time.monotonic() > deadline:
            raise Unavailable(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)


class Daemon:
    """One child process with its output in a file; ended by its pid and waited for."""

    def __init__(
        self,
        command: list[str],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self._child = subprocess.Popen(
                command, stdin=stdin, stdout=out, stderr=out, env=dict(env), cwd=cwd
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def stdin(self) -> IO[bytes]:
        assert self._child.stdin is not None
        return self._child.stdin

    def alive(self) -> bool:
        return self._child.poll() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, to this process only."""
        self._child.send_signal(number)

    def stop(self, patience: float = 10.0) -> int:
        """SIGTERM, then SIGKILL; returns the exit code."""
        if self.alive():
            self._child.terminate()
            try:
                self._child.wait(patience)
            except subprocess.TimeoutExpired:
                self._child.kill()
        code = self._child.wait()
        if self._child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        return code

    def wait(self, patience: float = 10.0) -> int:
        return self._child.wait(patience)
