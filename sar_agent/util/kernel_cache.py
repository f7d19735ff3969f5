"""Lets compiled kernels be used whatever has become of numba's cache.

An error of numba's cache ends the very call that compiled or wanted the kernel: a repair would fail
because a folder is full that only makes the next start faster, and every command after an upgrade
in place, because the cache names modules that have moved. So a cache that cannot be loaded is a
miss, and one that cannot be written is a warning. The decorators of kernels call
`outlive_cache_errors`, so every process that has kernels does.

A process whose kernels are all on disk needs nothing that only a compiler needs. What numba imports
for it, parts of scipy included, would be a quarter of the CPU time of a short command: `route
--engine sar-plus --fabric "xgft:2;6,6;1,3"` takes 2.1 s instead of 2.9.

**Weak spot:** the functions that are replaced here are not public, so pyproject.toml excludes the
releases of numba with which this has not been tried.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import caching, environment
from numba.core.runtime.nrt import rtsys

log = logging.getLogger(__name__)


def outlive_cache_errors() -> None:
    """Make cache errors of this process no errors. Calling it again has no effect."""
    save: Any = caching.Cache.save_overload
    if getattr(save, "careful", False):
        return

    def load_overload(self: Any, sig: Any, target_context: Any) -> Any:
        try:
            found = _load(self, sig, target_context)
            return _shared(self, sig, target_context) if found is None else found
        except Exception as error:
            # Of an older release whose modules have moved, or cut short by a full disk. The empty
            # index that replaces it lets the kernel be kept again.
            with suppress(Exception):
                self.flush()
            log.debug("%s: compiled again (%r)", self.cache_path, error)
            return None

    def save_overload(self: Any, sig: Any, data: Any) -> None:
        try:
            save(self, sig, data)
        except Exception as error:
            if not _warned:
                _warned.append(str(error))
                log.warning(
                    "%s: compiled kernels cannot be kept (%s); the next start compiles them again",
                    self.cache_path,
                    getattr(error, "strerror", None) or repr(error),
                )

    save_overload.careful = True  # type: ignore[attr-defined]
    caching.Cache.save_overload = save_overload  # type: ignore[method-assign]
    caching.Cache.load_overload = load_overload  # type: ignore[method-assign]
    environment._rebuild_env = _environment


_warned: list[str] = []
_IndexFile: Any = caching.IndexDataCacheFile
SHARED = "SAR_AGENT_KERNELS"
"""Variable with the folder of kernels that were compiled when the package was installed. It is read
after a user's own cache, and never written; it must belong to root or to this user."""


_OURS = ("sar_agent.", "sar_lab.")


def _load(cache: Any, sig: Any, target_context: Any) -> Any:
    """As numba's own method. That calls `target_context.refresh` first, which our kernels do not
    need once they are compiled: they call functions of numba's run time, and no others."""
    if cache._py_func.__module__.startswith(_OURS):
        rtsys.initialize(target_context)
    else:
        target_context.refresh()
    return cache._load_overload(sig, target_context)


_rebuild_env: Any = environment._rebuild_env


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """As numba's own function, which pickled kernels call for themselves and for functions of numba
    that are in their code. Compiled code reads no globals, so numba's modules are not imported."""
    if module.startswith("numba.") and module not in sys.modules:
        found = environment.lookup_environment(name)  # type: ignore[no-untyped-call]
        if found is None:
            found = environment.Environment({"__name__": module})
            found.consts[:] = constants
            found.env_name = name
            environment.Environment._memo[name] = found
        return found
    return _rebuild_env(module, constants, name)


# Stored kernels, of other programs too, name this function: they must load without this package.
_environment.__module__ = environment.__name__
_environment.__name__ = _environment.__qualname__ = "_rebuild_env"


def _shared(cache: Any, sig: Any, target_context: Any) -> Any:
    """The kernel from the shared folder; None where it is not there."""
    folder = os.environ.get(SHARED)
    if not folder or not _trusted(folder):
        return None
    source = cache._impl.locator
    path = Path(folder, source.get_suitable_cache_subpath(inspect.getfile(cache._py_func)))
    file: Any = _IndexFile(
        cache_path=str(path),
        filename_base=cache._impl.filename_base,
        source_stamp=source.get_source_stamp(),
    )
    try:
        data = file.load(cache._index_key(sig, target_context.codegen()))
    except Exception as error:
        log.debug("%s: not used (%r)", path, error)
        return None
    return None if data is None else cache._impl.rebuild(target_context, data)


def _trusted(folder: str) -> bool:
    """Whether nobody but root and this user can have written there: a kernel is machine code."""
    try:
        stat = Path(folder).stat()
    except OSError:
        return False
    return stat.st_uid in (0, os.geteuid()) and not stat.st_mode & 0o022
