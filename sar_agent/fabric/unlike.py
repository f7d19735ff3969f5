"""When one of many that are alike is odd: it is less than most, and few are as it is.

What many share is a design, however slow: hosts of an older generation, a rail for storage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ODD_SHARE = 0.25
"""The largest share of its like that may be odd."""


@dataclass(frozen=True)
class Odd:
    """One thing that differs, and the cables that it concerns."""

    sentence: str
    channels: tuple[int, ...] = ()
    terminals: tuple[int, ...] = ()
    switches: tuple[int, ...] = ()
    """Switches that lack a cable."""
    rank: tuple[float, ...] = ()
    """The lower, the worse."""


def below_most(values: NDArray[np.generic]) -> tuple[float, NDArray[np.bool_]]:
    """The most common value, and which are less, if these are few."""
    none = np.zeros(len(values), np.bool_)
    found, count = np.unique(values, return_counts=True)
    if not len(found):
        return 0.0, none
    usual = found[np.argmax(count)]
    odd = values < usual
    return float(usual), odd if odd.sum() <= ODD_SHARE * len(values) else none


def slower(
    rate: NDArray[np.floating], lanes: NDArray[np.integer]
) -> tuple[int, NDArray[np.bool_], NDArray[np.int64]]:
    """Of cables that are alike (not none): one with the most common rate and width, which are
    slower and of a rate and width that few have, and how many have that of each."""
    kind = np.stack([np.asarray(rate, np.float64), np.asarray(lanes, np.float64)], axis=1)
    kinds, at, count = np.unique(kind, axis=0, return_inverse=True, return_counts=True)
    at = at.reshape(-1)
    most = len(kinds) - 1 - int(np.argmax(count[::-1]))  # the faster of two that are as common
    few = count <= ODD_SHARE * len(kind)
    odd = (kinds[at, 0] < kinds[most, 0]) & few[at]
    return int(np.argmax(at == most)), odd, count[at].astype(np.int64)


def counted(count: float, what: str) -> str:
    """`1 cable`, `2 cables`."""
    return f"{count:g} {what}" + ("" if count == 1 else "s")
