"""Repeated times, and how they are shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median


class Times(list[float]):
    """Seconds of repeated runs."""

    @contextmanager
    def one(self) -> Iterator[None]:
        """Times the block and adds it."""
        start = time.perf_counter()
        yield
        self.append(time.perf_counter() - start)

    @property
    def median(self) -> float:
        return median(self)

    def show(self, form: str = ".3f", scale: float = 1.0) -> str:
        """`median (min … max)`, or the only one."""
        if len(self) == 1:
            return f"{self[0] * scale:{form}}"
        low, high = min(self) * scale, max(self) * scale
        return f"{self.median * scale:{form}} ({low:{form}} … {high:{form}})"


def repeat(run: Callable[[], object], count: int) -> Times:
    """Times of `count` calls."""
    times = Times()
    for _ in range(count):
        with times.one():
            run()
    return times
