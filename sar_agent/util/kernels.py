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

import numba

from sar_agent.util.kernel_cache import outlive_cache_errors

Function = TypeVar("Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its stubs lack two options
outlive_cache_errors()


def collect_seldom() -> None:
    """From now on, Python's garbage collector runs a hundredth as often. numba creates many objects
    that stay in use; examining them again and again took a tenth of the time of compiling."""
    gc.set_threshold(100_000, 50, 100)


def kernel(function: Function) -> Function:
    """A kernel that Python calls. Other threads run meanwhile: a table may take seconds."""
    compiled: Function = _njit(cache=True, no_cfunc_wrapper=True, nogil=True)(function)
    return compiled


def kernel_part(function: Function) -> Function:
    """A function that only kernels call. Called from Python, it raises `TypeError`."""
    compiled: Any = _njit(cache=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)(function)

    def refuse(*args: object, **kwargs: object) -> None:
        raise TypeError(f"{function.__module__}.{function.__name__} is for kernels, not for Python")

    # A call from Python looks among what was inserted, and compiles where it finds nothing. There,
    # numba would call the wrapper that is missing.
    compiled._insert = lambda *_: None
    compiled._compile_for_args = refuse
    result: Function = compiled
    return result
