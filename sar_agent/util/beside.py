"""Work that a second processor does beside the rest of a function.

Only where the result depends on no order: the bytes are the same on one processor, where the work
is done when its result is asked for. Kernels run beside each other and beside Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def beside(work: Callable[[], Result]) -> Iterator[Callable[[], Result]]:
    """Does `work` beside the block, which may ask for its result, or for its exception. The block
    does not end before the work has."""
    if processors() == 1:
        yield work
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work).result


@contextmanager
def workers() -> Iterator[ThreadPoolExecutor]:
    """A thread for each processor. They begin work in the order in which it is given to them; when
    the block ends, what has not begun is dropped."""
    pool = ThreadPoolExecutor(processors())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
