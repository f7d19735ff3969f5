"""The user's own commands, run through Slurm, and the number that each of them printed last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sar_agent.errors import SarError, Unavailable
from sar_agent.util.programs import run_program
from sar_lab.emulate.benchmark import Benchmark, Reading
from sar_lab.emulate.repeated import Repeated
from sar_lab.trial.way_back import end_jobs


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
        remedy = "--launch names the program that starts benchmarks (srun)"
        try:
            return benchmark.run(self.line(benchmark, nodes), seconds, remedy)
        except SarError:
            end_jobs(self.as_user, [self.jobs])
            raise


class Beside(Repeated):
    """`with Beside(…):` the second job runs, again and again, on its own nodes."""

    def __init__(self, launcher: Launcher, benchmark: Benchmark, nodes: Sequence[str]) -> None:
        self.name, self._as_user = launcher.beside, launcher.as_user
        super().__init__(launcher.line(benchmark, nodes, self.name))

    def __enter__(self) -> Self:
        super().__enter__()
        end = time.monotonic() + 60
        line = ["squeue", "-h", "-t", "R", "-o", "%i", "-n", self.name]
        while not run_program(
            line, deadline=30, most=1 << 20, remedy="install slurm-client"
        ).strip():
            if time.monotonic() > end or self.given_up:
                self.__exit__()
                raise Unavailable("the second job (--beside) does not start, or fails at once")
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        end = time.monotonic() + 30
        while not self.ends(0.0) and time.monotonic() < end:
            end_jobs(self._as_user, [self.name])
            self.ends(1.0)
        super().__exit__()
