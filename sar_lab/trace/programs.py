"""Traces of well-known programs, as texts in the trace format.

| program | what it is |
|---|---|
| `cartesian` | steps +x, -x, +y … on a grid, around the ends, a barrier after each |
| `wrf256` | WRF on 256 ranks: everybody sends to rank ± 16 at once |
| `cgd128` | NAS CG, class D, 128 ranks: four exchanges among 16 ranks, then the transpose |
| `alltoall` | everybody to everybody at once |

`cartesian` is routing-keys-2017's (Section IV-C), where every job has an order of its own; WRF and
CG are oblivious-xgft-2009's (Section VII-A).

In CG's transpose, 128 ranks being 8 rows of 16, rank r sends to 2 ((q mod 8) 8 + q div 8) + r mod 2
with q = r div 2, as NAS's own source has it; one pair of each 16 ranks sends to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sar_agent.errors import InputError
from sar_lab.trace.groups import grid_of, steps_of
from sar_lab.trace.parse import FIRST_LINE
from sar_lab.trace.units import size_text, time_text


@dataclass(frozen=True)
class ProgramOptions:
    """What a program is asked for."""

    ranks: int = 0
    """Of each job; 0: the program's own."""
    jobs: int = 1
    sizes: tuple[float, float] | None = None
    """Bytes a message: for each phase a power of two times the lower one is drawn, up to the upper
    one; None: the program's own."""
    iterations: int = 1
    utilization: float = 1.0
    """Above 0 … 1: the share of the time that phases would take to send if nobody shared a link;
    the rest is computation before each phase."""
    rate: float = 40.0
    """Gbit/s of a host, for that."""
    seed: int = 0


def cartesian(wish: ProgramOptions) -> str:
    """Raises `InputError` for jobs of one rank. Each job begins at a time of its own, drawn from
    one phase, computation included."""
    random = np.random.default_rng(wish.seed)
    ranks = wish.ranks or 216
    grid = grid_of(ranks)
    steps = steps_of(grid)
    if not steps:
        raise InputError("a grid of one rank has no neighbours", remedy="--ranks 2 or more")
    lines = [FIRST_LINE, f"# cartesian, seed {wish.seed}, utilization {wish.utilization:g}"]
    for job in range(wish.jobs):
        order = random.permutation(steps)
        phases = [(str(step), _drawn(wish, 32 * 2**10, random)) for step in order]
        longest = max(_computed(wish, size) + _sent(wish, size) for _, size in phases)
        lines += [f"job {job + 1} {ranks}", f"start {time_text(random.random() * longest)}"]
        lines += [f"grid {'x'.join(map(str, grid))}", f"repeat {wish.iterations}"]
        for step, size in phases:
            lines += _phase(wish, f"step {step} {size_text(size)}", size, f"{step}")
        lines.append("end")
    return "\n".join(lines) + "\n"


def wrf256(wish: ProgramOptions) -> str:
    """512 KB, where no size is asked for; in a fluid model all sizes give the same slowdown."""
    sends = [(i, i + by) for i in range(256) for by in (-16, 16) if 0 <= i + by < 256]
    return _fixed(wish, "wrf256", 256, [sends], 512 * 2**10)


def cgd128(wish: ProgramOptions) -> str:
    """750 KB a message."""
    halves = [[(r, r ^ far) for r in range(128)] for far in (8, 4, 2, 1)]
    pairs = [(r, r // 2) for r in range(128)]
    turned = [(r, 2 * (q % 8 * 8 + q // 8) + r % 2) for r, q in pairs]
    return _fixed(wish, "cgd128", 128, [*halves, turned], 750 * 2**10)


def alltoall(wish: ProgramOptions) -> str:
    """Each job alone."""
    random = np.random.default_rng(wish.seed)
    ranks = wish.ranks or 64
    lines = [FIRST_LINE, f"# alltoall, seed {wish.seed}"]
    for job in range(wish.jobs):
        size = _drawn(wish, 4 * 2**10, random)
        lines += [f"job {job + 1} {ranks}", f"repeat {wish.iterations}"]
        lines += [*_phase(wish, f"alltoall {size_text(size)}", size * (ranks - 1), "all"), "end"]
    return "\n".join(lines) + "\n"


PROGRAMS: dict[str, Callable[[ProgramOptions], str]] = {
    "alltoall": alltoall,
    "cartesian": cartesian,
    "cgd128": cgd128,
    "wrf256": wrf256,
}
"""Name to text of a trace."""


def _fixed(
    wish: ProgramOptions, name: str, ranks: int, phases: list[list[tuple[int, int]]], own: float
) -> str:
    """A program of its own number of ranks; a self-send is no line."""
    if wish.ranks not in (0, ranks):
        raise InputError(f"{name} has {ranks} ranks", remedy="leave --ranks out")
    random = np.random.default_rng(wish.seed)
    lines = [FIRST_LINE, f"# {name}"]
    for job in range(wish.jobs):
        lines += [f"job {job + 1} {ranks}", f"repeat {wish.iterations}"]
        for number, pairs in enumerate(phases, 1):
            size = _drawn(wish, own, random)
            sends = "\n".join(f"send {a} {b} {size_text(size)}" for a, b in pairs if a != b)
            most = max(np.bincount([a for a, b in pairs if a != b]))
            lines += _phase(wish, sends, size * int(most), f"phase{number}")
        lines.append("end")
    return "\n".join(lines) + "\n"


def _phase(wish: ProgramOptions, sends: str, most: float, key: str) -> list[str]:
    """`most`: bytes of the busiest rank."""
    wait = _computed(wish, most)
    compute = [f"compute {time_text(wait)}"] if wait else []
    return [*compute, f"request {key}", sends, "barrier", "done"]


def _drawn(wish: ProgramOptions, own: float, random: np.random.Generator) -> float:
    if wish.sizes is None:
        return own
    least, most = wish.sizes
    return least * 2.0 ** int(random.integers(0, int(np.log2(most / least)) + 1))


def _sent(wish: ProgramOptions, size: float) -> float:
    return size * 8e-9 / wish.rate


def _computed(wish: ProgramOptions, size: float) -> float:
    return _sent(wish, size) * (1 / wish.utilization - 1)
