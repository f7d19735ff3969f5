"""Unix seconds that do not jump when the machine's clock is set.

A lease that ends in an hour must not end now because the clock was set. The machine's clock is read
once, at the start of the process, and seconds are counted from there; so they are meaningful on
disk and to clients.
"""

from __future__ import annotations

import time

_WALL, _MONOTONIC = time.time(), time.monotonic()


def steady_time() -> float:
    """Unix seconds, by the clock as it was when the process started."""
    return _WALL + time.monotonic() - _MONOTONIC
