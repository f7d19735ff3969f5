"""Reads the trace format, which sar_lab/research/pages/simulate.md describes.

```
trace 1
job A 8              # a job of 8 ranks; what follows is its program
start 20us
grid 4x2             # for `step`
repeat 100
  compute 50us std 5us # uniform, of this mean and standard deviation
  request plus-x     # from here on, messages take the routes of this key …
  step +x 64KB       # every rank to its neighbour
  send 0 7 4KB       # one message
  barrier
  done               # … and from here on the default routes
end
```
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32
from sar_agent.util.text_files import normal_lines, read_text
from sar_lab.research.trace.groups import AXES, all_pairs, shift_pairs, step_pairs
from sar_lab.research.trace.program_trace import (
    F64,
    WIDTH,
    Program,
    ProgramPhase,
    ProgramTrace,
    make_phase,
)
from sar_lab.research.trace.units import size_of, time_of

FIRST_LINE = "trace 1"
PHASES_MOST = 1 << 20
"""The most phases of a job, repeats included: a typing error must not fill the memory."""


def read_trace(source: str | Path) -> ProgramTrace:
    """The trace in a file, or in a text of several lines. Raises `InputError` with file and
    line."""
    if isinstance(source, str) and "\n" in source:
        return _Reader("trace").read(normal_lines(source))
    return _Reader(str(source)).read(read_text(Path(source)))


@dataclass
class _Job:
    name: str
    ranks: int
    line: int
    start: float = 0.0
    grid: tuple[int, ...] = ()
    key: str | None = None
    compute: float = 0.0
    spread: float = 0.0
    """Standard deviation of `compute`."""
    pairs: list[I32] = field(default_factory=list)
    sizes: list[F64] = field(default_factory=list)
    blocks: list[list[ProgramPhase]] = field(default_factory=lambda: [[]])
    """Phases so far; inside `repeat`, those of each block that is open."""
    repeats: list[tuple[int, int, str | None]] = field(default_factory=list)
    """Times, line and key at the beginning of each open `repeat`."""


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.jobs: list[_Job] = []

    def read(self, text: str) -> ProgramTrace:
        began = False
        for self.line, raw in enumerate(text.splitlines(), 1):
            words = raw.partition("#")[0].split()
            if not words:
                continue
            if not began:
                if " ".join(words) != FIRST_LINE:
                    raise self._wrong(f"begins with {raw.strip()[:30]!r}", f"`{FIRST_LINE}` first")
                began = True
            elif words[0] == "job":
                self._close()
                self._job(words[1:])
            elif words[0] not in _STATEMENTS:
                raise self._wrong(
                    f"{words[0]!r} is not a statement of a trace", f"job, {', '.join(_STATEMENTS)}"
                )
            elif not self.jobs:
                raise self._wrong(f"{words[0]!r} before the first job", "`job NAME RANKS` first")
            else:
                _STATEMENTS[words[0]](self, self.jobs[-1], words[1:])
        self._close()
        if not self.jobs:
            raise InputError("the trace has no job", file=self.name, remedy="`job NAME RANKS`")
        return ProgramTrace(
            self.name,
            tuple(Program(j.name, j.ranks, j.start, tuple(j.blocks[0])) for j in self.jobs),
        )

    def _close(self) -> None:
        """Ends the program of the last job."""
        if not self.jobs:
            return
        job = self.jobs[-1]
        if job.repeats:
            raise InputError(
                "`repeat` without `end`", file=self.name, line=job.repeats[-1][1], remedy="add it"
            )
        self._phase(job)

    def _phase(self, job: _Job) -> None:
        if not job.pairs and not job.compute:
            return
        pairs = np.concatenate([np.empty((0, 2), np.int32), *job.pairs])
        sizes = np.concatenate([np.empty(0), *job.sizes])
        phase = make_phase(pairs, sizes, compute=job.compute, spread=job.spread, key=job.key)
        job.blocks[-1].append(phase)
        job.pairs, job.sizes, job.compute, job.spread = [], [], 0.0, 0.0

    def _job(self, arguments: list[str]) -> None:
        if len(arguments) != 2:
            raise self._wrong("a job needs a name and ranks", "`job NAME RANKS`")
        if any(job.name == arguments[0] for job in self.jobs):
            raise self._wrong(f"job {arguments[0]!r} is defined twice", "give it another name")
        self.jobs.append(_Job(arguments[0], self._number(arguments[1], "ranks"), self.line))

    def start(self, job: _Job, arguments: list[str]) -> None:
        if job.blocks != [[]] or job.pairs or job.compute:
            raise self._wrong("`start` after the program's first step", "put it below `job`")
        job.start = self._time(arguments)

    def grid(self, job: _Job, arguments: list[str]) -> None:
        sizes = arguments[0].split("x") if len(arguments) == 1 else []
        if not 1 <= len(sizes) <= 3 or not all(size.isdecimal() for size in sizes):
            raise self._wrong("a grid has one to three sizes", "e.g. `grid 4x4x2`")
        job.grid = tuple(map(int, sizes))
        if np.prod(job.grid) != job.ranks:
            raise self._wrong(
                f"grid {arguments[0]} does not fit {job.ranks} ranks", "the product must be equal"
            )

    def compute(self, job: _Job, arguments: list[str]) -> None:
        if job.pairs:
            raise self._wrong("`compute` while messages are being sent", "`barrier` before it")
        mean, spread = self._time(arguments[:1]), 0.0
        if len(arguments) > 1:
            if len(arguments) != 3 or arguments[1] != "std":
                raise self._wrong("`compute` takes a time, and may `std` and one", "50us std 5us")
            spread = self._time(arguments[2:])
        job.compute, job.spread = job.compute + mean, math.hypot(job.spread, spread)
        if job.compute < WIDTH * job.spread:
            raise self._wrong(
                f"a uniform time of {' '.join(arguments)} may be below 0",
                f"a standard deviation of at most {1 / WIDTH:.3f} of the mean",
            )

    def request(self, job: _Job, arguments: list[str]) -> None:
        if len(arguments) != 1:
            raise self._wrong("a request names one key", "`request NAME`")
        if job.pairs:
            raise self._wrong("`request` while messages are being sent", "`barrier` before it")
        job.key = arguments[0]

    def done(self, job: _Job, arguments: list[str]) -> None:
        if arguments:
            raise self._wrong("`done` takes no argument", "`done`")
        if job.key is None:
            raise self._wrong("`done` without a request", "`request NAME` before it")
        if job.pairs:
            raise self._wrong("`done` while messages are being sent", "`barrier` before it")
        job.key = None

    def barrier(self, job: _Job, arguments: list[str]) -> None:
        if arguments:
            raise self._wrong("`barrier` takes no argument", "`barrier`")
        self._phase(job)

    def repeat(self, job: _Job, arguments: list[str]) -> None:
        if len(arguments) != 1:
            raise self._wrong("`repeat` needs a number", "`repeat 10`")
        self._phase(job)
        job.repeats.append((self._number(arguments[0], "repeats"), self.line, job.key))
        job.blocks.append([])

    def end(self, job: _Job, arguments: list[str]) -> None:
        if arguments or not job.repeats:
            raise self._wrong("`end` without `repeat`", "leave it out")
        self._phase(job)
        times, _, key = job.repeats.pop()
        if key != job.key:
            raise self._wrong("another key at `end` than at `repeat`", "`done` before `end`")
        block = job.blocks.pop()
        if times * len(block) > PHASES_MOST:
            raise self._wrong(f"more than {PHASES_MOST:,} phases", "repeat less")
        job.blocks[-1] += block * times

    def send(self, job: _Job, arguments: list[str]) -> None:
        if len(arguments) != 3 or not all(word.isdecimal() for word in arguments[:2]):
            raise self._wrong("a send names two ranks and a size", "`send 0 1 64KB`")
        pair = int(arguments[0]), int(arguments[1])
        if max(pair) >= job.ranks:
            raise self._wrong(f"rank {max(pair)}", f"job {job.name} has 0 … {job.ranks - 1}")
        self._add(job, np.array([pair], np.int32), arguments[2])

    def shift(self, job: _Job, arguments: list[str]) -> None:
        if len(arguments) != 2 or not re.fullmatch(r"[+-]?\d+", arguments[0]):
            raise self._wrong("a shift names a distance and a size", "`shift 1 64KB`")
        self._add(job, shift_pairs(job.ranks, int(arguments[0])), arguments[1])

    def step(self, job: _Job, arguments: list[str]) -> None:
        if not job.grid:
            raise self._wrong("`step` without a grid", "`grid 4x4x2` before it")
        known = [sign + axis for axis in AXES[: len(job.grid)] for sign in "+-"]
        if len(arguments) != 2 or arguments[0] not in known:
            raise self._wrong(
                "a step names a direction and a size", f"`step +x 64KB`; {' '.join(known)}"
            )
        self._add(job, step_pairs(job.grid, arguments[0]), arguments[1])

    def alltoall(self, job: _Job, arguments: list[str]) -> None:
        if len(arguments) != 1:
            raise self._wrong("an alltoall names a size", "`alltoall 4KB`")
        self._add(job, all_pairs(job.ranks), arguments[0])

    def _add(self, job: _Job, pairs: I32, word: str) -> None:
        size = size_of(word)
        if size is None:
            raise self._wrong(f"{word!r} is not a size", "e.g. 64KB")
        job.pairs.append(pairs)
        job.sizes.append(np.full(len(pairs), size))

    def _number(self, word: str, what: str) -> int:
        if not word.isdecimal() or not int(word):
            raise self._wrong(f"{word!r} {what}", "a number above 0")
        return int(word)

    def _time(self, arguments: list[str]) -> float:
        seconds = time_of(arguments[0]) if len(arguments) == 1 else None
        if seconds is None:
            raise self._wrong(f"{' '.join(arguments)!r} is not a time", "e.g. 50us")
        return seconds

    def _wrong(self, what: str, remedy: str) -> InputError:
        return InputError(what, file=self.name, line=self.line, remedy=remedy)


_STATEMENTS = {
    "start": _Reader.start,
    "grid": _Reader.grid,
    "compute": _Reader.compute,
    "request": _Reader.request,
    "done": _Reader.done,
    "send": _Reader.send,
    "shift": _Reader.shift,
    "step": _Reader.step,
    "alltoall": _Reader.alltoall,
    "barrier": _Reader.barrier,
    "repeat": _Reader.repeat,
    "end": _Reader.end,
}
