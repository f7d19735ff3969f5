"""ORCS's patterns: the senders and receivers of each level.

A pattern of n ranks is a list of levels. All pairs of a level send together; the levels follow one
another. The patterns are those of ORCS's public source, with its peculiarities:

- `bisect` sends from the odd rank to the even one before it;
- in `ring` one pair a level hands a token around, n levels;
- `recdbl` doubles inside the largest power of two, and one more level feeds the ranks beyond it;
- `neighbor:k` links each rank to the first ranks after it that have a place free among their k.

`alltoall` is not in the public source; the authors of pFTree added it. Here all n (n - 1) pairs
send at once. (Their table 4 has n - 2 where n - 1 is expected.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sar_agent.fabric.model import I32

Levels = list[I32]
"""Each int32[N, 2]: sender, receiver, N > 0."""
RANDOM = "rand"
"""Every rank sends to another one, and each receives once: receivers are drawn again in each "
"run."""


def _pairs(source: ArrayLike, destination: ArrayLike) -> I32:
    return np.stack(np.broadcast_arrays(source, destination), axis=-1).astype(np.int32)


def _bisect(size: int) -> Levels:
    even = np.arange(0, size - 1, 2)
    return [_pairs(even + 1, even)]


def _bisect_fb_sym(size: int) -> Levels:
    even = np.arange(0, size - 1, 2)
    forward, back = _pairs(even, even + 1), _pairs(even + 1, even)
    return [np.stack([forward, back], axis=1).reshape(-1, 2)]


def _gather(size: int) -> Levels:
    return [_pairs(np.arange(1, size), 0)]


def _scatter(size: int) -> Levels:
    return [_pairs(0, np.arange(1, size))]


def _distances(size: int) -> list[int]:
    """The powers of two below the number of ranks."""
    return [1 << level for level in range((size - 1).bit_length())]


def _tree(size: int) -> Levels:
    levels = []
    for distance in _distances(size):
        rank = np.arange(min(distance, size - distance))
        levels.append(_pairs(rank, rank + distance))
    return levels


def _bruck(size: int) -> Levels:
    rank = np.arange(size)
    return [_pairs(rank, (rank + distance) % size) for distance in _distances(size)]


def _recdbl(size: int) -> Levels:
    power = 1 << (size.bit_length() - 1)
    levels = []
    for distance in _distances(power):
        low = np.arange(power).reshape(-1, 2, distance)[:, 0].ravel()
        both = [_pairs(low, low + distance), _pairs(low + distance, low)]
        levels.append(np.stack(both, axis=1).reshape(-1, 2))
    rest = np.arange(size - power)
    return [*levels, _pairs(rest, rest + power)]


def _ring(size: int) -> Levels:
    return [_pairs(np.array([rank]), (rank + 1) % size) for rank in range(size if size > 1 else 0)]


def _neighbor(size: int, number: int) -> Levels:
    number = min(number, size - 1)
    near: list[list[int]] = [[] for _ in range(size)]
    for rank in range(size):
        for other in range(rank + 1, size):
            if len(near[rank]) == number:
                break
            if len(near[other]) < number:
                near[rank].append(other)
                near[other].append(rank)
    return [np.array([(a, b) for a in range(size) for b in near[a]], np.int32).reshape(-1, 2)]


def _alltoall(size: int) -> Levels:
    both = _pairs(np.arange(size)[:, None], np.arange(size)[None, :]).reshape(-1, 2)
    return [both[both[:, 0] != both[:, 1]]]


def _rand(size: int) -> Levels:
    rank = np.arange(size if size > 1 else 0)
    return [_pairs(rank, np.roll(rank, -1))]


NAMED: dict[str, Callable[[int], Levels]] = {
    "alltoall": _alltoall,
    "bisect": _bisect,
    "bisect_fb_sym": _bisect_fb_sym,
    "bruck": _bruck,
    "gather": _gather,
    "null": lambda _: [],
    RANDOM: _rand,
    "recdbl": _recdbl,
    "ring": _ring,
    "scatter": _scatter,
    "tree": _tree,
}
"""Number of ranks → levels. The receivers of `rand` are placeholders for those that are drawn."""
NUMBERED: dict[str, Callable[[int, int], Levels]] = {"neighbor": _neighbor}
"""(ranks, number, at least 1) → levels."""
