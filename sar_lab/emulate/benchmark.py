"""A command of a user that is timed, and the number that it printed last."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sar_agent.errors import InputError, Unavailable
from sar_agent.util.programs import run_program

_MOST = 4 << 20
"""Bytes that a command may print."""
_ROW = re.compile(r"^[ \t]*\d+(?:[ \t]+[\d.eE+-]+)+[ \t]*$", re.M)
_OSU = re.compile(r"^# Size\s.*?(?P<unit>us|[MG]B/s)", re.M)
_IMB = re.compile(r"^[# \t]*#bytes\s+(?P<columns>#repetitions.*)$", re.M)
_PLAIN = (
    (re.compile(r"^trial: ([\d.eE+-]+) (\S+)$", re.M), None),
    (re.compile(r"^# Avg bus bandwidth\s*:\s*([\d.]+)()", re.M), "GB/s"),
    (re.compile(r"^Loop time of ([\d.eE+-]+)() on ", re.M), "s"),
    (re.compile(r"^NaturallyOrderedRingBandwidth_GBytes=([\d.eE+-]+)()$", re.M), "GB/s"),
    (re.compile(r"^real\s+([\d.]+)()$", re.M), "s"),
)
KNOWN = (
    "OSU's and Intel's MPI benchmarks, nccl-tests, HPCC's ring, LAMMPS, `time -p`, and a last "
    "line such as `trial: 12.5 s` or `trial: 9.1 GB/s`"
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

    def run(
        self,
        line: Sequence[str],
        seconds: float,
        remedy: str,
        environment: Mapping[str, str] | None = None,
    ) -> Reading:
        """Runs `line`, which starts the command. Raises `Unavailable` where it fails, does not end
        or prints no number."""
        text = run_program(
            line,
            deadline=seconds,
            most=_MOST,
            remedy=remedy,
            environment=environment,
            name=self.name,
        )
        if reading := read_output(text):
            return reading
        shown = " ".join(text.split())[-120:]
        what = f"no number that is known ({shown})" if shown else "nothing"
        raise Unavailable(f"{self.name} printed {what}; known are {KNOWN}")
