"""Times of repeated runs, and their text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import median


class Times(list[float]):
    """Seconds of repeated runs; `cpu` are the CPU seconds of this process. If nothing waits, these
    are the times of an idle machine."""

    def __init__(self, seconds: Iterable[float] = ()) -> None:
        super().__init__(seconds)
        self.cpu: list[float] = []

    @contextmanager
    def one(self) -> Iterator[None]:
        """Measures the block and adds its time."""
        start, cpu = time.perf_counter(), time.process_time()
        yield
        self.cpu.append(time.process_time() - cpu)
        self.append(time.perf_counter() - start)

    @property
    def median(self) -> float:
        return median(self)

    def show(self, form: str = ".3f") -> str:
        """`median (min … max)`, or the only time."""
        if len(self) == 1:
            return f"{self[0]:{form}}"
        return f"{self.median:{form}} ({min(self):{form}} … {max(self):{form}})"


def repeat(run: Callable[[], object], count: int) -> Times:
    """Times of `count` calls."""
    times = Times()
    for _ in range(count):
        with times.one():
            run()
    return times
