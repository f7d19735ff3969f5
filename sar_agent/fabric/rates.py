"""Converts link rates: `4xHDR` to Gbit/s of data, and back.

Widths and speeds may have one rate: half of a 4xHDR cable, 2xHDR, is as fast as 4xEDR. So a rate
that was read keeps its number of lanes, for the words that a person compares with the dump.
"""

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


class LinkRate(float):
    """Gbit/s of data, and the number of lanes that make it up."""

    __slots__ = ("lanes",)
    lanes: int

    def __new__(cls, rate: float, lanes: int) -> LinkRate:
        made = super().__new__(cls, rate)
        made.lanes = lanes
        return made


def lanes_of(rate: float) -> int:
    """The number of lanes; 0 where the rate was not read from a width and a speed."""
    return rate.lanes if isinstance(rate, LinkRate) else 0


_RATE = {
    f"{width}x{speed}": LinkRate(width * lane, width)
    for width in _WIDTHS
    for speed, lane in LANE_RATE.items()
}
_NAME: dict[tuple[float, int], str] = {}
for _name, _rate in _RATE.items():
    _NAME[float(np.float32(_rate)), _rate.lanes] = _name
    _NAME.setdefault((float(np.float32(_rate)), 0), _name)


@lru_cache(maxsize=256)
def parse_rate(text: str) -> LinkRate | None:
    """`4xHDR` to 200.0 Gbit/s; None where width or speed is unknown (`4x??`)."""
    return _RATE.get(text.upper().replace("X", "x", 1))


def speed_words(rate: float, lanes: int = 0) -> str:
    """`4xHDR`, or the number where no link has that rate."""
    return rate_name(rate, lanes) or f"{rate:g} Gbit/s"


def rate_name(rate: float, lanes: int = 0) -> str | None:
    """200.0 to `4xHDR`: with that number of lanes, or with four where it is not known or does not
    make that rate; None where no link has the rate."""
    key = float(np.float32(rate))
    return _NAME.get((key, int(lanes))) or _NAME.get((key, 0))
