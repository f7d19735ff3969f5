"""Compiled kernels that cannot be kept on a full disk are used all the same.

numba lets the error of its cache end the very call that compiled: a repair would end for want of
room in a folder that only makes the next start quicker.
"""

from __future__ import annotations

import logging
from typing import Any

from numba.core import caching

log = logging.getLogger(__name__)


def outlive_full_disk() -> None:
    """For this process; once is enough, more do no harm."""
    keep: Any = caching.Cache.save_overload
    if getattr(keep, "careful", False):
        return

    def save_overload(self: Any, sig: Any, data: Any) -> None:
        try:
            keep(self, sig, data)
        except OSError as error:
            if not _said:
                _said.append(str(error))
                log.warning(
                    "%s: compiled kernels cannot be kept (%s); the next start compiles them again",
                    self.cache_path,
                    error.strerror,
                )

    save_overload.careful = True  # type: ignore[attr-defined]
    caching.Cache.save_overload = save_overload  # type: ignore[method-assign]


_said: list[str] = []
