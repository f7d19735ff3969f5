"""Sizes and times with units, such as 64KB and 12us."""

from __future__ import annotations

import re

_SIZES = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)")


def size_of(text: str) -> float | None:
    """Bytes, above 0: `64KB` is 65,536 (`KiB` is the same); None where the text is not a size."""
    match = _NUMBER.fullmatch(text)
    factor = _SIZES.get(match[2].upper().replace("IB", "B")) if match else None
    return float(match[1]) * factor or None if match and factor else None


def time_of(text: str) -> float | None:
    """Seconds: `12us`, `0.5ms`; None where the text is not a time."""
    match = _NUMBER.fullmatch(text)
    factor = _TIMES.get(match[2]) if match else None
    return float(match[1]) * factor if match and factor else None


def size_text(size: float) -> str:
    """The text that `size_of` reads as this size."""
    for unit in ("GB", "MB", "KB"):
        if size % _SIZES[unit] == 0:
            return f"{size / _SIZES[unit]:.0f}{unit}"
    return f"{size:.17g}B" if size != int(size) else f"{size:.0f}B"


def time_text(seconds: float) -> str:
    """The text that `time_of` reads as this time, except for rounding of the last bit."""
    return f"{seconds * 1e6:.12f}".rstrip("0").rstrip(".") + "us"
