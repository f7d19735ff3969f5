"""Starts the ranks of all jobs, lets them begin at one agreed time, and reads how long they took.

A rank says `ready` when it is connected to all its peers. Only then the time to begin is agreed, so
a start that was lost (a rank died or hangs at connecting) is seen, and repeated. Later, a rank that
fails or does not end makes the run a lost one: a sentence instead of a time.
"""

from __future__ import annotations

import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, NamedTuple

from sar_agent.util.programs import run_program
from sar_lab.emulate.benchmark import Reading
from sar_lab.emulate.idle import idle_share, read_ticks
from sar_lab.emulate.phases import Place, Program, rank_texts
from sar_lab.live.process import PATIENCE, find_program

STARTS = 3
"""How often a start is tried."""
_START_SECONDS = 30.0
_FIRST_PORT, _PORTS = 5000, 20000


class Run(NamedTuple):
    """One run of one program, of all jobs at once."""

    seconds: tuple[float, ...]
    """Of each job, from the agreed time to the end of its last rank; empty: the run was lost."""
    idle: float
    """Idle share of the processors meanwhile, 0 … 1."""
    late: float = 0.0
    """Seconds that the last rank began after the agreed time."""
    lost: str = ""
    """Why the run was lost."""
    printed: tuple[Reading, ...] = ()
    """What each job's command printed; of patterns none."""


class JobToRun(NamedTuple):
    """A job: the namespaces (files), addresses and the program of its ranks."""

    namespaces: tuple[str, ...]
    addresses: tuple[str, ...]
    program: Program


class _Lost(Exception):
    """A rank has ended, or says nothing. A lost start may be repeated."""


@contextmanager
def ranks_program() -> Iterator[Path]:
    """`ranks.c`, compiled. Raises `SarError` without a compiler."""
    with as_file(files("sar_lab.emulate") / "ranks.c") as source, compiled(source) as program:
        yield program


@contextmanager
def compiled(
    source: Path, *flags: str, compiler: str = "cc", package: str = "gcc and libc6-dev"
) -> Iterator[Path]:
    """A C file, compiled in a folder that is removed; the compiler is of a Debian package. Raises
    `SarError` where that is missing."""
    compiler = find_program(compiler, package)
    with tempfile.TemporaryDirectory(prefix="sar-compiled-") as folder:
        program = Path(folder) / source.stem
        usual = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2")
        run_program(
            [compiler, *usual, *flags, "-o", str(program), str(source)],
            deadline=60 * PATIENCE,
            most=1 << 20,
            remedy=f"install {package}",
        )
        yield program


def run_jobs(program: Path, jobs: Sequence[JobToRun], seconds: float) -> Run:
    """All jobs once, each within `seconds` of the agreed time; `program` is `ranks_program`."""
    why = ""
    for _ in range(STARTS):
        try:
            return _run(program, jobs, seconds)
        except _Lost as error:
            why = str(error)
    return Run((), 0.0, lost=f"{STARTS} starts were lost: {why}")


class _Rank(NamedTuple):
    job: int
    name: str
    process: subprocess.Popen[str]

    def pipe(self) -> IO[str]:
        assert self.process.stdout
        return self.process.stdout

    def write(self, text: str) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(text)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise _Lost(self.last_words()) from None

    def last_words(self) -> str:
        """Of a rank that has ended, or is ended here."""
        self.process.kill()
        assert self.process.stderr
        said = self.process.stderr.read(300).strip()
        code = self.process.wait()
        return f"job {self.job + 1}, {said or f'{self.name} ended with exit code {code}'}"


def _run(program: Path, jobs: Sequence[JobToRun], seconds: float) -> Run:
    ranks: list[_Rank] = []
    start_seconds, seconds = _START_SECONDS * PATIENCE, seconds * PATIENCE
    try:
        for number, job in enumerate(jobs):
            port = _FIRST_PORT + number % _PORTS
            places = [Place(address, port) for address in job.addresses]
            limit = int(start_seconds + seconds) + 5
            for rank, text in enumerate(rank_texts(job.program, places, limit)):
                ranks.append(_started(program, number, rank, job.namespaces[rank]))
                ranks[-1].write(text)
        _lines(ranks, time.monotonic() + start_seconds)
        start = time.time() + 0.1 + 0.002 * len(ranks)
        for each in ranks:
            each.write(f"start {start:.6f}\n")
        time.sleep(max(0.0, start - time.time()))
        before = read_ticks()
        try:
            said = _lines(ranks, time.monotonic() + seconds)
        except _Lost as error:
            return Run((), idle_share(before, read_ticks()), lost=str(error))
        idle = idle_share(before, read_ticks())
        ends, late = [0.0] * len(jobs), 0.0
        for each in ranks:
            word, spent, behind = said[each.process.pid].split()
            assert word == "done"
            ends[each.job] = max(ends[each.job], float(spent))
            late = max(late, float(behind))
        return Run(tuple(ends), idle, late)
    finally:
        for each in ranks:
            each.process.kill()
        for each in ranks:
            each.process.communicate()


def _started(program: Path, job: int, rank: int, namespace: str) -> _Rank:
    process = subprocess.Popen(
        [str(program), namespace],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for this process, which ends them
    )
    return _Rank(job, f"rank {rank}", process)


def _lines(ranks: Sequence[_Rank], end: float) -> Mapping[int, str]:
    """One line of each rank, by its process. Raises `_Lost` at the first rank that ends
    without one, or where some have said nothing by `end`."""
    said: dict[int, str] = {}
    with selectors.DefaultSelector() as waiting:
        for each in ranks:
            waiting.register(each.pipe(), selectors.EVENT_READ, each)
        while waiting.get_map():
            ready = waiting.select(max(0.0, end - time.monotonic()))
            if not ready:
                first: _Rank = next(iter(waiting.get_map().values())).data
                raise _Lost(
                    f"{len(waiting.get_map())} of {len(ranks)} ranks gave no answer in time; first "
                    f"job {first.job + 1}, {first.name}"
                )
            for key, _ in ready:
                rank: _Rank = key.data
                line = rank.pipe().readline()
                if not line:
                    raise _Lost(rank.last_words())
                said[rank.process.pid] = line
                waiting.unregister(rank.pipe())
    return said
