"""A command that runs beside what is timed, again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

_MOST_FAILURES = 3


class Repeated:
    """`with Repeated(line):` the command runs until the end. It is given up after three failures.

    **Weak spot:** between two runs of a short command nothing is sent."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._line, self._environment = line, environment
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._failures = 0

    @property
    def given_up(self) -> bool:
        return self._failures >= _MOST_FAILURES

    def _repeat(self) -> None:
        while not self._ended.is_set() and not self.given_up:
            self._process = subprocess.Popen(
                self._line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )
            if self._process.wait() and not self._ended.is_set():
                self._failures += 1

    def ends(self, seconds: float) -> bool:
        """Whether it ends within these seconds, once its process has; none is started again."""
        self._ended.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        while not self.ends(0.1):
            if self._process:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
