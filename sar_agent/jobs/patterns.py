"""Who sends to whom inside a job: named patterns, and files of rank pairs.

A job's ranks are its terminals in the order of their host's names and rails, one a terminal. A
pattern is a list of phases, each a list of (from, to); self-sends are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.model import I32
from sar_agent.fabric.text import read_text
from sar_agent.jobs.model import Job

Phase = tuple[I32, I32]
"""(sources int32[N], destinations int32[N])"""


def phases_of(pattern: str, fabric: Fabric, job: Job) -> list[Phase]:
    """The phases as terminals of the fabric.

    `pattern` is a name of `NAMED` with its number (`shift:3`), or a file: lines `FROM TO` of
    ranks, an empty line between phases, `#` comments. Raises `InputError`.
    """
    size = len(job.terminals)
    name, _, number = pattern.partition(":")
    known = NAMED.get(name)
    ranks = known(size, _number(pattern, number)) if known else _read(pattern, size)
    order = sorted(
        job.terminals.tolist(),
        key=lambda t: (hca_order(fabric.terminal_host[t]), int(fabric.terminal_rail[t])),
    )
    terminal = np.array(order, np.int32)
    return [(terminal[a[a != b]], terminal[b[a != b]]) for a, b in ranks]


def _number(pattern: str, text: str) -> int:
    if not text:
        return 1
    if not text.isdecimal():
        raise InputError(f"pattern {pattern!r}: {text!r} is no number", remedy="e.g. shift:3")
    return int(text)


def _shift(size: int, by: int) -> list[Phase]:
    ranks = np.arange(size, dtype=np.int32)
    return [(ranks, ((ranks + by) % size).astype(np.int32))]


def _ring(size: int, _: int) -> list[Phase]:
    return _shift(size, 1) + _shift(size, size - 1)


def _all_to_all(size: int, _: int) -> list[Phase]:
    return [phase for by in range(1, size) for phase in _shift(size, by)]


def _bit_complement(size: int, _: int) -> list[Phase]:
    ranks = np.arange(size, dtype=np.int32)
    return [(ranks, ranks[::-1].copy())]


def _transpose(size: int, _: int) -> list[Phase]:
    side = int(size**0.5)
    if side * side != size:
        raise InputError(f"transpose wants a square number of ranks, the job has {size}")
    ranks = np.arange(size, dtype=np.int32)
    return [(ranks, ranks.reshape(side, side).T.ravel().copy())]


def _butterfly(size: int, _: int) -> list[Phase]:
    if size & (size - 1):
        raise InputError(f"butterfly wants a power of two of ranks, the job has {size}")
    ranks = np.arange(size, dtype=np.int32)
    return [(ranks, ranks ^ np.int32(1 << bit)) for bit in range(size.bit_length() - 1)]


NAMED: dict[str, Callable[[int, int], list[Phase]]] = {
    "shift": _shift,
    "ring": _ring,
    "alltoall": _all_to_all,
    "bitcomp": _bit_complement,
    "transpose": _transpose,
    "butterfly": _butterfly,
}
"""Name to (ranks, number) → phases of rank pairs."""


def _read(path: str, size: int) -> list[Phase]:
    if not Path(path).is_file():
        raise InputError(
            f"{path!r} is neither a pattern nor a file", remedy=f"patterns: {', '.join(NAMED)}"
        )
    phases: list[list[tuple[int, int]]] = [[]]
    for number, raw in enumerate(read_text(Path(path)).splitlines(), 1):
        words = raw.partition("#")[0].split()
        if not words and not raw.strip() and phases[-1]:
            phases.append([])
        if not words:
            continue
        if len(words) != 2 or not all(word.isdecimal() for word in words):
            raise InputError(f"{raw.strip()[:40]!r} is not `FROM TO`", file=path, line=number,
                             remedy="two ranks, from 0")  # fmt: skip
        pair = int(words[0]), int(words[1])
        if max(pair) >= size:
            raise InputError(
                f"rank {max(pair)}, but the job has ranks 0 … {size - 1}", file=path, line=number
            )
        phases[-1].append(pair)
    found = [np.array(phase, np.int32).reshape(-1, 2) for phase in phases if phase]
    return [(pairs[:, 0].copy(), pairs[:, 1].copy()) for pairs in found]
