"""Lets compiled kernels be used even if a full disk does not take them into numba's cache.

An error of numba's cache ends the very call that compiled the kernel: a repair would fail because a
folder is full that only makes the next start faster.
"""

from __future__ import annotations

import logging
from typing import Any

from numba.core import caching

log = logging.getLogger(__name__)


def outlive_full_disk() -> None:
    """Make cache errors of this process a warning. Calling it again has no effect."""
    save: Any = caching.Cache.save_overload
    if getattr(save, "careful", False):
        return

    def save_overload(self: Any, sig: Any, data: Any) -> None:
        try:
            save(self, sig, data)
        except OSError as error:
            if not _warned:
                _warned.append(str(error))
                log.warning(
                    "%s: compiled kernels cannot be kept (%s); the next start compiles them again",
                    self.cache_path,
                    error.strerror,
                )

    save_overload.careful = True  # type: ignore[attr-defined]
    caching.Cache.save_overload = save_overload  # type: ignore[method-assign]


_warned: list[str] = []
