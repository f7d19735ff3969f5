"""Decorators of kernels, the functions that numba compiles.

numba wraps every function it compiles twice: for calls from Python, which unpacks each array of
each argument, and for pointers in C. Wrappers that nobody calls took 8 to 23 % of the time of a
first start, and a fifth of the code that every start loads.

Kernels of a first look copy arrays in loops: for `a[:n] = b` numba compiles the message for shapes
that differ, which takes 1.5 s.

numba is imported, and a kernel made, when Python calls the first one: importing numba takes .3 s,
and commands that compute nothing need none of it.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_templates: list[Callable[..., Any]] = []
_lock = threading.RLock()
compile_listeners: list[Callable[[Callable[..., Any]], None]] = []
"""Each is called with every function of ours that this process begins to compile."""


class Kernel:
    """A function that numba compiles at its first call, for each signature."""

    options: ClassVar = {"nogil": True}

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """numba's dispatcher."""
        with _lock:
            return vars(self).get("compiled") or _make(self._function, self.options)


class KernelPart(Kernel):
    """One that only kernels call. Called from Python, it is Python."""

    options: ClassVar = {"no_cpython_wrapper": True}

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


@cache
def kernels_folder() -> Path | None:
    """Where compiled kernels are kept; None where they cannot be. Imports numba."""
    from sar_agent.util.kernel_cache import use_cache

    folder = use_cache()  # before numba is imported
    import numba
    from numba.core import event
    from numba.extending import typeof_impl

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith(("sar_agent.", "sar_lab.")):
                for listener in tuple(compile_listeners):
                    listener(function)

        def on_end(self, event: event.Event) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
    config: Any = numba.config
    typeof: Any = numba.typeof
    config.CACHE_DIR = str(folder or "")  # where numba was imported before
    typeof_impl.register(Kernel, lambda kernel, _: typeof(kernel.compiled))
    return folder


def _make(function: Callable[..., Any], options: dict[str, bool]) -> Any:
    folder = kernels_folder()
    from numba import njit
    from numba.extending import register_jitable

    while _templates:
        register_jitable(no_cfunc_wrapper=True)(_templates.pop())
    compile_: Any = njit  # its stubs lack two options
    return compile_(cache=folder is not None, no_cfunc_wrapper=True, **options)(function)


def collect_seldom() -> None:
    """From now on, Python's garbage collector runs a hundredth as often. numba creates many objects
    that stay in use; examining them again and again took a tenth of the time of compiling."""
    gc.set_threshold(100_000, 50, 100)


def kernel(function: Function) -> Function:
    """A kernel that Python calls. Other threads run meanwhile: a table may take seconds."""
    return cast(Function, Kernel(function))


def kernel_part(function: Function) -> Function:
    """A function that only kernels call."""
    return cast(Function, KernelPart(function))


def kernel_template(function: Function) -> Function:
    """A part of kernels that takes functions as arguments, or one of these functions. numba cannot
    keep such a part by itself, so it is compiled into each kernel that calls it."""
    _templates.append(function)
    return function
