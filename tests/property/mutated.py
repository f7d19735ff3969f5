"""Mutated inputs through every reader of ours, with figures: time and memory for each message.

`python -m tests.property.mutated --count 1000000` prints a table; a number names an input, so a
defect is found again with `--reader NAME --first N --count 1`.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import resource
import signal
import sys
import time
import traceback
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sar_agent.config.model import ConfigError
from sar_agent.errors import SarError
from tests.property.mutator import mutated
from tests.property.readers import Reader, readers

SLOW = ("host list", "topology.conf", "topology.yaml", "psl", "slvl", "history by hour")
"""They take ten times as long as the others (a host list may name a million), and get a quarter of
their share."""
LONGEST_SENTENCE = 1500
"""Characters of what a user is told of an input."""
TRACED = 200
"""One input of so many has its memory traced, which makes it slow."""


@dataclass
class Defect:
    """Anything that came out of a reader and is no `SarError`."""

    what: str
    number: int
    """Of the first input."""
    data: bytes
    count: int = 1


@dataclass
class Figures:
    """Of one reader."""

    name: str
    inputs: int = 0
    taken: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    longest_number: int = 0
    peak: int = 0
    """Most bytes that one input of those that were traced took while it was read."""
    peak_number: int = 0
    grown: int = 0
    """Kilobytes by which the process's peak grew."""
    defects: dict[str, Defect] = field(default_factory=dict)

    def row(self) -> str:
        each = 1e6 * self.seconds / max(1, self.inputs)
        return (
            f"| {self.name:23} | {self.inputs:9,} | {self.taken / max(1, self.inputs):5.0%} "
            f"| {each:8.0f} | {1000 * self.longest:10.1f} | {self.peak / 2**20:8.2f} "
            f"| {self.grown / 1024:8.1f} | {sum(d.count for d in self.defects.values()):7} |"
        )


HEAD = (
    "| reader                  |    inputs | taken | us, mean | ms, longest | MB, peak | MB grown "
    "| defects |"
)


class Endless(BaseException):
    """An input took more seconds of the processor than `patience`."""


def try_all(reader: Reader, first: int, count: int, patience: float = 0.0) -> Figures:
    """Inputs `first` … of one reader; numbers of different readers give different bytes."""
    figures = Figures(reader.name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with _alarm(patience):
        for number in range(first, first + count):
            data = mutated(reader.seeds, number)
            _one(reader, data, number, figures, patience)
    figures.grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return figures


def _one(reader: Reader, data: bytes, number: int, figures: Figures, patience: float) -> None:
    traced = number % TRACED == 0
    if traced:
        tracemalloc.start()
    figures.inputs += 1
    began = time.perf_counter()
    try:
        if patience:
            signal.setitimer(signal.ITIMER_PROF, patience)
        reader.read(data)
        figures.taken += 1
    except ConfigError:
        pass  # a sentence for each key, each in a line
    except SarError as error:
        if len(str(error).splitlines()) != 1 or len(str(error)) > LONGEST_SENTENCE:
            _defect(figures, ValueError(f"not one sentence: {error}"), number, data)
    except (Exception, Endless) as error:
        _defect(figures, error, number, data)
    finally:
        if patience:
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.perf_counter() - began
        if traced:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if peak > figures.peak:
                figures.peak, figures.peak_number = peak, number
        else:
            figures.seconds += took
            if took > figures.longest:
                figures.longest, figures.longest_number = took, number


def _defect(figures: Figures, error: BaseException, number: int, data: bytes) -> None:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "sar_agent" in f.filename]
    place = (
        f"{frames[-1].filename.rpartition('sar_agent')[2]}:{frames[-1].lineno}" if frames else ""
    )
    what = f"{type(error).__name__} in {place}"
    if what in figures.defects:
        figures.defects[what].count += 1
    else:
        figures.defects[what] = Defect(f"{what}: {str(error)[:200]}", number, data)


@contextmanager
def _alarm(patience: float) -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise Endless

    if not patience:
        yield
        return
    before = signal.signal(signal.SIGPROF, ring)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def main() -> int:
    """Exit code 1 where there is a defect."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--count", type=int, default=100_000, help="over all readers")
    ask.add_argument("--first", type=int, default=0)
    ask.add_argument("--reader", help="only this one")
    ask.add_argument("--patience", type=float, default=10.0, help="processor seconds for an input")
    ask.add_argument("--memory", type=int, default=6, help="GiB that the process may take")
    said = ask.parse_args()
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (said.memory << 30, said.memory << 30))
    bad = total = 0
    with readers() as found:
        wanted = [one for one in found if said.reader in (None, one.name)]
        random.Random(said.first).shuffle(wanted)
        slow = [one for one in wanted if one.name in SLOW]
        share = math.ceil(said.count / (len(wanted) - len(slow) * 3 / 4))
        print(HEAD, flush=True)
        for reader in wanted:
            count = -(-share // 4) if reader in slow else share
            figures = try_all(reader, said.first, count, said.patience)
            total += figures.inputs
            print(figures.row(), flush=True)
            for one in figures.defects.values():
                bad += 1
                print(f"  DEFECT {one.count} x {one.what}; input {one.number}: {one.data[:120]!r}")
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{total:,} inputs, {bad} kinds of defects, peak of the process {rss:.0f} MB")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
