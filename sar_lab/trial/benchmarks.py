"""The user's own commands, run through Slurm, and the number that each of them printed last."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.util.programs import run_program
from sar_lab.trial.way_back import end_jobs

MOST = 4 << 20
"""Bytes that a benchmark may print."""
_ROW = re.compile(r"^[ \t]*\d+(?:[ \t]+[\d.eE+-]+)+[ \t]*$", re.M)
_OSU = re.compile(r"^# Size\s.*?(?P<unit>us|[MG]B/s)", re.M)
_IMB = re.compile(r"^[# \t]*#bytes\s+(?P<columns>#repetitions.*)$", re.M)
_PLAIN = (
    (re.compile(r"^trial: ([\d.eE+-]+) (\S+)$", re.M), None),
    (re.compile(r"^# Avg bus bandwidth\s*:\s*([\d.]+)()", re.M), "GB/s"),
    (re.compile(r"^real\s+([\d.]+)()$", re.M), "s"),
)
KNOWN = (
    "OSU's and Intel's MPI benchmarks, nccl-tests, `time -p`, and a last line such as "
    "`trial: 12.5 s` or `trial: 9.1 GB/s`"
)


class Reading(NamedTuple):
    """What a benchmark printed: a time or, where the unit is per second, a rate."""

    value: float
    unit: str

    @property
    def time(self) -> float:
        """Grows with the time that was taken."""
        return 1 / self.value if self.unit.endswith("/s") else self.value


def read_output(text: str) -> Reading | None:
    """The last number of a known form; None where there is none above 0.

    >>> read_output("# Size       Avg Latency(us)\\n1024   10.5\\n65536  200.25\\n")
    Reading(value=200.25, unit='us')
    """
    found: Reading | None = None
    for pattern, unit in _PLAIN:
        if matches := pattern.findall(text):
            found = found or _reading(matches[-1][0], unit or matches[-1][1])
    rows = _ROW.findall(text)
    if found is None and rows and (head := _OSU.search(text)):
        found = _reading(rows[-1].split()[1], head["unit"])
    if found is None and rows and (head := _IMB.search(text)):
        columns = head["columns"].split()
        for best in ("t[usec]", "t_avg[usec]"):
            if best in columns:
                found = _reading(rows[-1].split()[1 + columns.index(best)], "us")
    return found


def _reading(number: str, unit: str) -> Reading | None:
    try:
        value = float(number)
    except ValueError:
        return None
    return Reading(value, unit) if 0 < value < float("inf") else None


@dataclass(frozen=True)
class Benchmark:
    """A command of the user."""

    name: str
    command: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Benchmark:
        """`NAME=COMMAND`, or the command alone. Raises `InputError`."""
        name, equals, command = text.partition("=")
        if not equals or not re.fullmatch(r"[\w.-]+", name):
            name, command = "", text
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise InputError(f"--run {text!r}: {error}", remedy="close the quotes") from error
        if not words:
            raise InputError(f"--run {text!r} names no command", remedy="--run NAME=COMMAND")
        return cls(name or words[0].rpartition("/")[2], words)


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
