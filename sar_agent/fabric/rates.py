"""Converts link rates: `4xHDR` to Gbit/s of data, and back."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

LANE_RATE = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 13.64,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
"""Gbit/s of data per lane: the signalling rate without the overhead of its encoding."""

UNREAD = "no readable width and speed"
"""What notes say of cables whose rate is a guess, …"""
_WIDTHS = (4, 1, 2, 12, 8)  # the most likely first: several widths can have one rate
_RATE = {f"{width}x{speed}": width * lane for width in _WIDTHS for speed, lane in LANE_RATE.items()}
_NAME: dict[float, str] = {}
for _name, _rate in _RATE.items():
    _NAME.setdefault(float(np.float32(_rate)), _name)


@lru_cache(maxsize=256)
def parse_rate(text: str) -> float | None:
    """`4xHDR` to 200.0 Gbit/s; None where width or speed is unknown (`4x??`)."""
    return _RATE.get(text.upper().replace("X", "x", 1))


def speed_words(rate: float) -> str:
    """`4xHDR`, or the number where no link has that rate."""
    return rate_name(rate) or f"{rate:g} Gbit/s"


def rate_name(rate: float) -> str | None:
    """200.0 to `4xHDR`, with four lanes where possible; None where no link has that rate."""
    return _NAME.get(float(np.float32(rate)))
