"""Jobs of Slurm that repeat one all-reduce of Open MPI, and what they print of each iteration."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from sar_agent.errors import SarError
from sar_lab.emulate.command_runner import OPEN_MPI
from sar_lab.live.slurm import SlurmCluster

_ITERATION = re.compile(r"^iteration \d+: ([\d.]+) s, ended ([\d.]+), (\d+) sums wrong$", re.M)
_ALL_REDUCE = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_allreduce_algorithm": "4"}
"""Open MPI's ring; by itself it would take another algorithm for so few bytes."""


class Iteration(NamedTuple):
    """One all-reduce, as rank 0 printed it."""

    seconds: float
    """On the slowest rank."""
    ended: float
    """Unix seconds."""
    wrong: int
    """Sums that were not as they should be."""


@dataclass
class MpiJob:
    """A running job."""

    number: str
    """Slurm's."""
    terminals: tuple[int, ...]
    output: Path
    iterations: list[Iteration] = field(default_factory=list)
    _text: str = ""

    def read(self) -> None:
        """What it has printed by now, into `iterations`."""
        self._text = self.output.read_text() if self.output.exists() else ""
        self.iterations = [
            Iteration(float(seconds), float(ended), int(wrong))
            for seconds, ended, wrong in _ITERATION.findall(self._text)
        ]

    def since(self, begin: float) -> list[Iteration]:
        """Iterations that began after these Unix seconds."""
        return [each for each in self.iterations if each.ended - each.seconds >= begin]

    def median(self, begin: float) -> float:
        """Median seconds of these iterations, of which there is one at least."""
        return median(iteration.seconds for iteration in self.since(begin))

    @property
    def ended(self) -> bool:
        """Whether Slurm or Open MPI have ended it."""
        return " error: " in self._text

    def last_words(self) -> str:
        """The end of its output."""
        return " ".join(self._text.split())[-200:]


class MpiJobs:
    """Starts jobs of `program` (all_reduce.c) with messages of `size` bytes on the hosts of
    `slurm`; `no_spin` is the library that lets waiting ranks sleep."""

    def __init__(self, slurm: SlurmCluster, program: Path, no_spin: Path, size: int) -> None:
        self._slurm, self.running = slurm, list[MpiJob]()
        self._script = slurm.folder / "all-reduce.sh"
        settings = "".join(
            f"export OMPI_MCA_{name}={shlex.quote(value)}\n"
            for name, value in (OPEN_MPI | _ALL_REDUCE).items()
        )
        self._script.write_text(
            f"#!/bin/sh\n{settings}exec srun --mpi=pmix --export=ALL,LD_PRELOAD={no_spin} "
            f"{program} {size}\n"
        )

    def start(self, terminals: tuple[int, ...]) -> MpiJob:
        """By sbatch, one rank on each host. Raises `SarError`."""
        names = [self._slurm.nodes[terminal] for terminal in terminals]
        said = self._slurm.run(
            "sbatch", "--parsable", "--sar-traffic=ring", f"--nodelist={','.join(names)}",
            f"--nodes={len(names)}", "--ntasks-per-node=1",
            f"--output={self._slurm.folder}/job-%j.out", str(self._script),
        )  # fmt: skip
        number = said.strip().partition(";")[0]
        if not number.isdigit():
            raise SarError(f"sbatch answered {said.strip()[:100]!r} instead of a job's number")
        job = MpiJob(number, terminals, self._slurm.folder / f"job-{number}.out")
        self.running.append(job)
        return job

    def cancel(self, job: MpiJob) -> None:
        """Returns when it has ended."""
        self._slurm.scancel(job.number)
        self.running.remove(job)

    def read(self) -> None:
        """What all of them have printed by now."""
        for job in self.running:
            job.read()

    def wrong(self) -> int:
        """Sums of all running jobs that were not as they should be."""
        return sum(iteration.wrong for job in self.running for iteration in job.iterations)
