"""Work that a second processor does beside the rest of a function.

Only where the result depends on no order: the bytes are the same on one processor, where the work
is done when its result is asked for. Kernels run beside each other and beside Python.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


class _Helpers(threading.local):
    seconds = 0.0


_helpers = _Helpers()


def processor_seconds() -> float:
    """CPU seconds of this thread, and of second processors in the blocks that it has ended."""
    return time.thread_time() + _helpers.seconds


class SecondProcessor:
    """Does one work after the other."""

    def __init__(self, pool: ThreadPoolExecutor | None) -> None:
        self._pool = pool

    def start(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Begins `work`; returns the function that waits for its result, or raises its exception.
        On one processor that function does the work."""
        return self._pool.submit(work).result if self._pool else work


@contextmanager
def second_processor() -> Iterator[SecondProcessor]:
    """A second processor for the block, which does not end before all work has."""
    if processors() == 1:
        yield SecondProcessor(None)
        return
    with ThreadPoolExecutor(1) as pool:
        try:
            yield SecondProcessor(pool)
        finally:
            _helpers.seconds += pool.submit(time.thread_time).result()


@contextmanager
def beside(work: Callable[[], Result]) -> Iterator[Callable[[], Result]]:
    """Does `work` beside the block, which may ask for its result, or for its exception. The block
    does not end before the work has."""
    with second_processor() as second:
        yield second.start(work)


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """A thread for each processor. They begin work in the order in which it is given to them; when
    the block ends, what has not begun is dropped."""
    pool = ThreadPoolExecutor(processors())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
