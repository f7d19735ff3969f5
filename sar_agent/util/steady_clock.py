"""Unix seconds that a step of the machine's clock does not move.

A lease that ends in an hour must not end now because somebody set the clock. Seconds are counted
from the process's start, where the machine's clock is believed once, so that they mean something on
disk and to clients.
"""

from __future__ import annotations

import time

_WALL, _MONOTONIC = time.time(), time.monotonic()


def steady_time() -> float:
    """Unix seconds, by the clock as it was at the start."""
    return _WALL + time.monotonic() - _MONOTONIC
