"""Lets compiled kernels be used whatever has become of numba's cache.

An error of numba's cache ends the very call that compiled or wanted the kernel: a repair would fail
because a folder is full that only makes the next start faster, and every command after an upgrade
in place, because the cache names modules that have moved. So a cache that cannot be loaded is a
miss, and one that cannot be written is a warning. numba calls `outlive_cache_errors` itself, in
every process that has kernels (entry point group `numba_extensions`).
"""

from __future__ import annotations

import inspect
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import caching

from sar_agent.util.portable_kernels import keep_portable, load_portable

log = logging.getLogger(__name__)


def outlive_cache_errors() -> None:
    """Make cache errors of this process no errors. Calling it again has no effect."""
    save: Any = caching.Cache.save_overload
    load: Any = caching.Cache.load_overload
    if getattr(save, "careful", False):
        return

    def load_overload(self: Any, sig: Any, target_context: Any) -> Any:
        try:
            found = load(self, sig, target_context)
            return _shared(self, sig, target_context) if found is None else found
        except Exception as error:
            # Of an older release whose modules have moved, or cut short by a full disk. The empty
            # index that replaces it lets the kernel be kept again.
            with suppress(Exception):
                self.flush()
            log.debug("%s: compiled again (%r)", self.cache_path, error)
            return None

    def save_overload(self: Any, sig: Any, data: Any) -> None:
        if keep := os.environ.get(KEEP):
            keep_portable(Path(keep), self, sig, data)
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


_warned: list[str] = []
_IndexFile: Any = caching.IndexDataCacheFile
SHARED = "SAR_AGENT_KERNELS"
"""Variable with folders of kernels that a package brought along (`portable_kernels.py`) or compiled
when it was installed, divided by colons. They are read after a user's own cache, the first that has
the kernel counts, and they are never written; each must belong to root or to this user."""
KEEP = "SAR_AGENT_KEEP_KERNELS"
"""Variable with a folder into which all kernels that are compiled are written, to be brought along
by a package. Errors of it are errors."""
_native_only = False


def compile_natively() -> None:
    """From now on this process takes no kernel that was compiled for any processor: `warm-up`
    replaces them by faster ones."""
    global _native_only
    _native_only = True


def _shared(cache: Any, sig: Any, target_context: Any) -> Any:
    """The kernel from a shared folder; None where it is not there."""
    codegen, source = target_context.codegen(), cache._impl.locator
    for folder in filter(_trusted, os.environ.get(SHARED, "").split(os.pathsep)):
        path = Path(folder, source.get_suitable_cache_subpath(inspect.getfile(cache._py_func)))
        file: Any = _IndexFile(
            cache_path=str(path),
            filename_base=cache._impl.filename_base,
            source_stamp=source.get_source_stamp(),
        )
        try:
            data = file.load(cache._index_key(sig, codegen))
            if data is None and not _native_only:
                data = load_portable(Path(folder), cache, sig, codegen)
        except Exception as error:
            log.debug("%s: not used (%r)", path, error)
            continue
        if data is not None:
            return cache._impl.rebuild(target_context, data)
    return None


def _trusted(folder: str) -> bool:
    """Whether nobody but root and this user can have written there: a kernel is machine code."""
    try:
        stat = Path(folder).stat()
    except OSError:
        return False
    return bool(folder) and stat.st_uid in (0, os.geteuid()) and not stat.st_mode & 0o022
