"""The user's own commands, run through Slurm, and the number that each of them printed last."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sar_agent.errors import SarError, Unavailable
from sar_agent.util.programs import run_program
from sar_lab.emulate.benchmark import KNOWN, Benchmark, Reading, read_output
from sar_lab.trial.way_back import end_jobs

MOST = 4 << 20
"""Bytes that a benchmark may print."""


@dataclass(frozen=True)
class Launcher:
    """How commands get onto nodes of the reservation."""

    prefix: tuple[str, ...]
    reservation: str
    jobs: str
    """The name of the jobs."""

    @property
    def beside(self) -> str:
        """The name of second jobs."""
        return f"{self.jobs}-beside"

    @property
    def as_user(self) -> tuple[str, ...]:
        """What precedes `srun`: `sudo -n -u alice`."""
        starter = [n for n, word in enumerate(self.prefix) if word.endswith(("srun", "salloc"))]
        return self.prefix[: starter[0] if starter else 0]

    def line(self, benchmark: Benchmark, nodes: Sequence[str], name: str = "") -> list[str]:
        """The command line; `name`: of the job, instead of the usual one."""
        return [
            *self.prefix,
            f"--reservation={self.reservation}",
            f"--job-name={name or self.jobs}",
            f"--nodes={len(nodes)}",
            f"--nodelist={','.join(nodes)}",
            "--immediate=60",
            *benchmark.command,
        ]

    def run(self, benchmark: Benchmark, nodes: Sequence[str], seconds: float) -> Reading:
        """Raises `Unavailable` where the command fails, does not end or prints no number."""
        try:
            text = run_program(
                self.line(benchmark, nodes),
                deadline=seconds,
                most=MOST,
                remedy="--launch names the program that starts benchmarks (srun)",
            )
        except SarError:
            end_jobs(self.as_user, [self.jobs])
            raise
        if reading := read_output(text):
            return reading
        shown = " ".join(text.split())[-120:]
        what = f"no number that is known ({shown})" if shown else "nothing"
        raise Unavailable(f"{benchmark.name} printed {what}; known are {KNOWN}")


class Beside:
    """`with Beside(…):` the second job runs, again and again, on its own nodes.

    **Weak spot:** between two runs of a short command nothing is sent."""

    def __init__(self, launcher: Launcher, benchmark: Benchmark, nodes: Sequence[str]) -> None:
        self.name, self._as_user = launcher.beside, launcher.as_user
        self._line = launcher.line(benchmark, nodes, self.name)
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self.failures = 0

    def _repeat(self) -> None:
        while not self._ended.is_set() and self.failures < 3:
            self._process = subprocess.Popen(
                self._line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if self._process.wait() and not self._ended.is_set():
                self.failures += 1

    def __enter__(self) -> Beside:
        self._thread.start()
        end = time.monotonic() + 60
        line = ["squeue", "-h", "-t", "R", "-o", "%i", "-n", self.name]
        while not run_program(line, deadline=30, most=MOST, remedy="install slurm-client").strip():
            if time.monotonic() > end or self.failures >= 3:
                self.__exit__()
                raise Unavailable("the second job (--beside) does not start, or fails at once")
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        end = time.monotonic() + 30
        while self._thread.is_alive() and time.monotonic() < end:
            end_jobs(self._as_user, [self.name])
            self._thread.join(1.0)
        if self._thread.is_alive() and self._process:
            self._process.kill()
