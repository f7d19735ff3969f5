"""Traffic patterns inside a job: the forms of `traffic.txt`, and files, as phases of rank pairs.

A form of the table and the function that builds it have one name, so that the patterns that the
SPANK plugin accepts are those that are routed here. Ranks that would send to themselves in a
pattern do not send; in a file that is an error. What a job is expected to run that declares nothing
is in `collectives.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sar_agent.demand.rank_order import ranks_of
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs.model import Job, JobMix
from sar_agent.jobs.traffic import forms
from sar_agent.util.text_files import read_text

ALL_MOST = 4096
"""The most ranks of an all-to-all: 128 MB of pairs."""
Phase = tuple[I32, I32]
"""(sources int32[N], destinations int32[N])"""


class RankPhase(NamedTuple):
    """One phase between ranks; no rank sends to itself."""

    name: str
    source: I32
    """int32[N]"""
    destination: I32
    """int32[N]"""
    weight: float = 1.0
    """Share of its rate at which a rank sends each message of the phase."""


def rank_phases(pattern: str, size: int) -> list[RankPhase]:
    """The phases of a pattern, e.g. `stencil2d:4x4`, among `size` ranks; names are unique.

    Raises `InputError` for a word that is not in `traffic.txt` or that does not say who sends to
    whom, and where the pattern needs more ranks, or another number of them.
    """
    for form in forms():
        name = form.form.partition(":")[0]
        if name in NAMED and (match := form.match(pattern)):
            phases = NAMED[name](size, [int(value) for value in match.groups()])
            return [_without_self(phase) for phase in phases]
    what = f"{pattern[:60]!r} does not say who sends to whom"
    raise InputError(what, remedy=f"there are {_known()}")


def phases_of(pattern: str, fabric: Fabric, job: Job) -> list[Phase]:
    """The phases between terminals, one rank per terminal (`rank_order.py`).

    `pattern` is a word of `traffic.txt`, or else a file (such as `./ring`), see `read_phases`.
    Raises `InputError`.
    """
    size = len(job.terminals)
    if pattern.partition(":")[0] in NAMED:
        phases = rank_phases(pattern, size)
    elif Path(pattern).is_file():
        phases = read_phases(read_text(Path(pattern)), size, pattern)
    else:
        known = f"there are {_known()}"
        raise InputError(f"{pattern[:60]!r} is neither a pattern nor a file", remedy=known)
    terminal = ranks_of(fabric, JobMix((job,)))
    return [(terminal[phase.source], terminal[phase.destination]) for phase in phases]


_RANK = re.compile(r"\d{1,18}")


def _known() -> str:
    return ", ".join(form.form for form in forms() if form.form.partition(":")[0] in NAMED)


def read_phases(text: str, size: int, file: str | Path | None = None) -> list[RankPhase]:
    """Phases from text: lines `FROM TO` of ranks, `[NAME]` or an empty line before each phase, `#`
    comments. Phases without a name are called by their number. Raises `InputError` with the line.
    """
    pairs: dict[str, list[tuple[int, int]]] = {}
    phase: list[tuple[int, int]] | None = None

    def begin(name: str, line: int, remedy: str = "") -> list[tuple[int, int]]:
        if not name or name in pairs:
            what = f"two phases are called {name!r}" if name else "a phase without a name"
            raise InputError(what, file=file, line=line, remedy=remedy)
        return pairs.setdefault(name, [])

    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            if phase and not raw.strip():
                phase = None
            continue
        if line.startswith("[") and line.endswith("]"):
            phase = begin(line[1:-1].strip(), number, remedy="give each its own")
            continue
        words = line.split()
        if len(words) != 2 or not all(map(_RANK.fullmatch, words)):
            raise InputError(f"{line[:40]!r} is not `FROM TO`", file=file, line=number,
                             remedy="two ranks, from 0")  # fmt: skip
        if phase is None:
            phase = begin(str(len(pairs) + 1), number)
        phase.append(_pair(words, size, file, number))
    phases = [
        RankPhase(name, *np.array(ranks, np.int32).T.copy())
        for name, ranks in pairs.items()
        if ranks
    ]
    if not phases:
        raise InputError("no pair of ranks", file=file, remedy="write lines FROM TO")
    return phases


def _pair(words: Sequence[str], size: int, file: str | Path | None, line: int) -> tuple[int, int]:
    a, b = (int(word) for word in words)
    if max(a, b) >= size:
        raise InputError(
            f"rank {max(a, b)}, but the job has ranks 0 … {size - 1}", file=file, line=line
        )
    if a == b:
        raise InputError(f"rank {a} sends to itself", file=file, line=line, remedy="leave it out")
    return a, b


def _without_self(phase: RankPhase) -> RankPhase:
    other = phase.source != phase.destination
    return phase._replace(source=phase.source[other], destination=phase.destination[other])


def _shift(size: int, values: list[int]) -> list[RankPhase]:
    [by] = values
    if by >= size:
        raise InputError(f"shift:{by} needs more than {by} ranks, the job has {size}")
    ranks = np.arange(size, dtype=np.int32)
    return [RankPhase(f"+{by}", ranks, ((ranks + by) % size).astype(np.int32))]


def _ring(size: int, _: list[int]) -> list[RankPhase]:
    return _shift(size, [1]) if size > 1 else []


def _all_to_all(size: int, _: list[int]) -> list[RankPhase]:
    if size > ALL_MOST:
        raise InputError(
            f"all pairs of {size} ranks are too much to write down (at most {ALL_MOST})",
            remedy="leave the pattern out: without one, all-to-all is what is expected",
        )
    return [phase for by in range(1, size) for phase in _shift(size, [by])]


def _bit_complement(size: int, _: list[int]) -> list[RankPhase]:
    ranks = np.arange(size, dtype=np.int32)
    return [RankPhase("complement", ranks, ranks[::-1].copy())]


def _transpose(size: int, _: list[int]) -> list[RankPhase]:
    side = int(size**0.5)
    if side * side != size:
        raise InputError(f"transpose needs a square number of ranks, the job has {size}")
    ranks = np.arange(size, dtype=np.int32)
    return [RankPhase("transpose", ranks, ranks.reshape(side, side).T.ravel().copy())]


def _butterfly(size: int, _: list[int]) -> list[RankPhase]:
    if size & (size - 1):
        raise InputError(f"butterfly needs a power of two of ranks, the job has {size}")
    ranks = np.arange(size, dtype=np.int32)
    bits = range(size.bit_length() - 1)
    return [RankPhase(f"bit {bit}", ranks, ranks ^ np.int32(1 << bit)) for bit in bits]


def _stencil(size: int, sides: list[int]) -> list[RankPhase]:
    """A stencil on a grid in which the last side counts fastest, as in MPI_Cart_create; ranks past
    the grid do not send."""
    grid = 1
    for side in sides:  # no product that wraps
        grid *= side
    if grid > size:
        shape = "x".join(map(str, sides))
        raise InputError(
            f"a grid of {shape} needs {grid} ranks, the job has {size}",
            remedy="give sides whose product is the number of ranks",
        )
    ranks = np.arange(grid, dtype=np.int32).reshape(sides)
    return [
        RankPhase(f"{sign}{'xyz'[axis]}", ranks.ravel(), np.roll(ranks, by, axis).ravel().copy())
        for axis in range(len(sides))
        for sign, by in (("+", -1), ("-", 1))
    ]


def _both_ways(size: int, _: list[int]) -> list[RankPhase]:
    """A ring in both directions at half the rate each."""
    if size < 2:
        return []
    ranks = np.arange(size, dtype=np.int32)
    source = np.concatenate([ranks, ranks])
    return [
        RankPhase("+1 -1", source, np.concatenate([np.roll(ranks, -1), np.roll(ranks, 1)]), 0.5)
    ]


def _recursive_doubling(size: int, _: list[int]) -> list[RankPhase]:
    """Exchanges among 2^k ranks, the largest power of two that fits. Before them, of the first
    pairs of ranks the even one gives its data to the odd one, and afterwards gets the result
    (MPICH's and Open MPI's `allreduce_intra_recursivedoubling`)."""
    some = 1 << size.bit_length() >> 1
    folded = np.arange(0, 2 * (size - some), 2, dtype=np.int32)
    left = np.concatenate([folded + 1, np.arange(2 * len(folded), size)]).astype(np.int32)
    bits = range(some.bit_length() - 1)
    place = np.arange(some)
    phases = [RankPhase(f"bit {bit}", left, left[place ^ (1 << bit)]) for bit in bits]
    if not len(folded):
        return phases
    fold = RankPhase("fold", folded, folded + np.int32(1))
    return [fold, *phases, RankPhase("unfold", fold.destination, fold.source)]


def _bruck(size: int, _: list[int]) -> list[RankPhase]:
    """Rank i sends to i + 2^k, as in Bruck's all-gather and all-to-all and in the dissemination
    barrier."""
    return [phase for bit in range((size - 1).bit_length()) for phase in _shift(size, [1 << bit])]


def _double_tree(size: int, _: list[int]) -> list[RankPhase]:
    """The two binary trees of NCCL's all-reduce (after Sanders, Speck, Träff, 2009), each with half
    of the data: a rank is a leaf of at least one. Reduction leads up in both trees, broadcast
    down."""
    rank = np.arange(1, size)
    bit = rank & -rank
    parent = (rank ^ bit) | (bit << 1)
    parent = np.where(parent < size, parent, rank ^ bit)
    if size % 2:  # the second tree is the first one shifted by a rank, or mirrored
        other, above = (rank + 1) % size, (parent + 1) % size
    else:
        other, above = size - 1 - rank, size - 1 - parent
    low = np.concatenate([rank, other]).astype(np.int32)
    high = np.concatenate([parent, above]).astype(np.int32)
    return [RankPhase("up", low, high, 0.5), RankPhase("down", high, low, 0.5)]


def dims_create(size: int, dimensions: int) -> list[int]:
    """Sides whose product is `size`, descending and as close to each other as possible, as
    `MPI_Dims_create` gives them (MPI 4.1, Section 8.5.2)."""
    if dimensions == 1:
        return [size]
    found = [
        sorted([side, *dims_create(size // side, dimensions - 1)], reverse=True)
        for side in range(1, int(size ** (1 / dimensions) + 1e-9) + 1)
        if size % side == 0
    ]
    return min(found, key=lambda sides: (sides[0] - sides[-1], sides))


def _halo(dimensions: int) -> Callable[[int, list[int]], list[RankPhase]]:
    return lambda size, _: _stencil(size, dims_create(size, dimensions))


NAMED: dict[str, Callable[[int, list[int]], list[RankPhase]]] = {
    "ring": _ring,
    "stencil2d": _stencil,
    "stencil3d": _stencil,
    "transpose": _transpose,
    "shift": _shift,
    "bitcomp": _bit_complement,
    "butterfly": _butterfly,
    "alltoall": _all_to_all,
    "pairwise": _all_to_all,
    "bidirectional-ring": _both_ways,
    "recursive-doubling": _recursive_doubling,
    "bruck": _bruck,
    "double-tree": _double_tree,
    "halo2d": _halo(2),
    "halo3d": _halo(3),
}
"""By name of a form: the function (ranks, the form's numbers) → phases, self-sends included."""
