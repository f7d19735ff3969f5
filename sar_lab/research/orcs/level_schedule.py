"""`Schedule`: the levels of one pattern, or of two simultaneous patterns, as flat arrays.

`a::b` is pattern a among the first k ranks and pattern b among the rest. As in ORCS, level i of a
runs together with the next level of b. If b ends before a, it begins again; if a ends before b,
the rest of b runs alone. Every run begins at the first level of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import U32
from sar_lab.research.orcs.orcs_patterns import NAMED, NUMBERED, RANDOM, Levels


class Schedule(NamedTuple):
    """P pairs of n ranks in L levels."""

    pattern: str
    ranks: int
    first: int
    """k: ranks of the first group; n where there is one group."""
    source: U32
    """uint32[P], rank."""
    destination: U32
    """uint32[P], another rank; a placeholder for pairs in `drawn`."""
    level: U32
    """uint32[L + 1] into the pairs; no level is empty."""
    drawn: U32
    """uint32[R, 3]: the receivers of these pairs are drawn in each run: first pair, number of
    pairs, first rank."""

    @property
    def background(self) -> bool:
        """Whether the second group sends the same in each level, however its ranks are drawn."""
        return self.pattern.endswith("::alltoall")


def schedule_of(pattern: str, ranks: int, first: int | None = None) -> Schedule:
    """Raises `InputError` for an unknown pattern, and where `first` (2 … ranks - 1) is missing."""
    left, separator, right = pattern.partition("::")
    if first is not None and not 1 < first < ranks:
        raise InputError(
            f"a first group of {first} ranks is impossible with {ranks} ranks",
            remedy=f"-z goes from 2 to {max(2, ranks - 1)}",
        )
    if not separator:
        return _flat(pattern, ranks, first or ranks, [(_levels(left, ranks), left, 0)])
    if first is None:
        raise InputError(
            f"{pattern!r} needs the number of ranks of the first pattern", remedy="add -z K"
        )
    return _flat(
        pattern,
        ranks,
        first,
        [(_levels(left, first), left, 0), (_levels(right, ranks - first), right, first)],
    )


def _levels(pattern: str, ranks: int) -> Levels:
    name, _, number = pattern.partition(":")
    if name in NAMED and not number:
        levels = NAMED[name](ranks)
    elif name in NUMBERED and number.isdecimal() and int(number):
        levels = NUMBERED[name](ranks, int(number))
    elif name in NUMBERED:
        raise InputError(f"pattern {pattern!r} needs a number", remedy=f"e.g. {name}:5")
    elif name in NAMED:
        raise InputError(f"pattern {name!r} takes no number, it got {number!r}", remedy=name)
    else:
        known = ", ".join([*NAMED, *(f"{each}:K" for each in NUMBERED)])
        raise InputError(f"no pattern is called {name!r}", remedy=f"one of {known}, or A::B")
    return [level for level in levels if len(level)]


def _flat(pattern: str, ranks: int, first: int, groups: list[tuple[Levels, str, int]]) -> Schedule:
    """`groups`: levels, name and first rank."""
    merged = _merged([levels for levels, _, _ in groups])
    pairs, level, drawn = [np.empty((0, 2), np.int32)], [0], []
    for parts in merged:
        start = level[-1]
        for part, (_, name, base) in zip(parts, groups, strict=False):
            if name == RANDOM and len(part):
                drawn.append((start, len(part), base))
            pairs.append(part + np.int32(base))
            start += len(part)
        level.append(start)
    both = np.concatenate(pairs).astype(np.uint32)
    return Schedule(
        pattern,
        ranks,
        first,
        np.ascontiguousarray(both[:, 0]),
        np.ascontiguousarray(both[:, 1]),
        np.array(level, np.uint32),
        np.array(drawn, np.uint32).reshape(-1, 3),
    )


def _merged(groups: list[Levels]) -> list[Levels]:
    """The pairs of each group in each level."""
    if len(groups) == 1:
        return [[level] for level in groups[0]]
    nobody = np.empty((0, 2), np.int32)
    a, b = groups
    merged: list[Levels] = []
    at = 0
    for level in range(len(a) + len(b)):
        if at >= len(b) and level < len(a):
            at = 0
        both = [each[i] if i < len(each) else nobody for each, i in ((a, level), (b, at))]
        if not sum(map(len, both)):
            break
        merged.append(both)
        at += 1
    return merged
