"""Decorators of kernels, the functions that numba compiles.

numba wraps every function it compiles twice: for calls from Python, which unpacks each array of
each argument, and for pointers in C. Wrappers that nobody calls took 8 to 23 % of the time of a
first start, and a fifth of the code that every start loads.

Kernels of a first look copy arrays in loops: for `a[:n] = b` numba compiles the message for shapes
that differ, which takes 1.5 s.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

from sar_agent.util.kernel_cache import use_cache

FOLDER = use_cache()  # before numba is imported
"""Where compiled kernels are kept; None where they cannot be."""

import numba  # noqa: E402
from numba.extending import register_jitable  # noqa: E402

Function = TypeVar("Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its stubs lack an option
_config: Any = numba.config
_config.CACHE_DIR = str(FOLDER or "")  # where numba was imported before


def collect_seldom() -> None:
    """From now on, Python's garbage collector runs a hundredth as often. numba creates many objects
    that stay in use; examining them again and again took a tenth of the time of compiling."""
    gc.set_threshold(100_000, 50, 100)


def kernel(function: Function) -> Function:
    """A kernel that Python calls. Other threads run meanwhile: a table may take seconds."""
    options = {"no_cfunc_wrapper": True, "nogil": True}
    compiled: Function = _njit(cache=FOLDER is not None, **options)(function)
    return compiled


def kernel_part(function: Function) -> Function:
    """A function that only kernels call. It is compiled with them; called from Python, it is
    Python."""
    part: Function = register_jitable(no_cfunc_wrapper=True)(function)
    return part
