"""Generators of well-known programs, as text in the trace format.

| program | what it is |
|---|---|
| `cartesian` | steps +x, -x, +y … on a periodic grid, with a barrier after each |
| `wrf256` | WRF on 256 ranks: all ranks send to rank ± 16 at once |
| `cgd128` | NAS CG, class D, 128 ranks: four exchanges among 16 ranks, then the transpose |
| `alltoall` | all ranks send to all others at once |

`cartesian` is from routing-keys-2017 (Section IV-C), where every job has its own order of steps;
WRF and CG are from oblivious-xgft-2009 (Section VII-A).

In CG's transpose, 128 ranks being 8 rows of 16, rank r sends to 2 ((q mod 8) 8 + q div 8) + r mod 2
with q = r div 2, as in the source of NAS; one pair of each 16 ranks sends to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sar_agent.errors import InputError
from sar_lab.research.trace.groups import grid_of, steps_of
from sar_lab.research.trace.parse import FIRST_LINE
from sar_lab.research.trace.units import size_text, time_text


@dataclass(frozen=True)
class ProgramOptions:
    """The options of a generated program."""

    ranks: int = 0
    """Ranks of each job; 0: the program's own number."""
    jobs: int = 1
    sizes: tuple[float, float] | None = None
    """Bytes of a message, from and to: for each phase the lower bound times a random power of two
    is drawn. None: the program's own size."""
    iterations: int = 1
    utilization: float = 1.0
    """The share of time spent sending if no link were shared, above 0 and at most 1; the rest is
    computation before each phase."""
    rate: float = 40.0
    """Gbit/s of a host, from which the time for sending follows."""
    seed: int = 0


def cartesian(options: ProgramOptions) -> str:
    """Steps on a periodic grid. Each job begins at a random time within one phase, computation
    included. Raises `InputError` for jobs of one rank."""
    random = np.random.default_rng(options.seed)
    ranks = options.ranks or 216
    grid = grid_of(ranks)
    steps = steps_of(grid)
    if not steps:
        raise InputError("a grid of one rank has no neighbours", remedy="--ranks 2 or more")
    lines = [FIRST_LINE, f"# cartesian, seed {options.seed}, utilization {options.utilization:g}"]
    for job in range(options.jobs):
        order = random.permutation(steps)
        phases = [(str(step), _drawn(options, 32 * 2**10, random)) for step in order]
        longest = max(_computed(options, size) + _sent(options, size) for _, size in phases)
        lines += [f"job {job + 1} {ranks}", f"start {time_text(random.random() * longest)}"]
        lines += [f"grid {'x'.join(map(str, grid))}", f"repeat {options.iterations}"]
        for step, size in phases:
            lines += _phase(options, f"step {step} {size_text(size)}", size, f"{step}")
        lines.append("end")
    return "\n".join(lines) + "\n"


def wrf256(options: ProgramOptions) -> str:
    """WRF. The default size is 512 KB; in a fluid model all sizes give the same slowdown."""
    sends = [(i, i + by) for i in range(256) for by in (-16, 16) if 0 <= i + by < 256]
    return _fixed(options, "wrf256", 256, [sends], 512 * 2**10)


def cgd128(options: ProgramOptions) -> str:
    """NAS CG, class D. The default size of a message is 750 KB."""
    halves = [[(r, r ^ far) for r in range(128)] for far in (8, 4, 2, 1)]
    pairs = [(r, r // 2) for r in range(128)]
    turned = [(r, 2 * (q % 8 * 8 + q // 8) + r % 2) for r, q in pairs]
    return _fixed(options, "cgd128", 128, [*halves, turned], 750 * 2**10)


def alltoall(options: ProgramOptions) -> str:
    """An all-to-all within each job."""
    random = np.random.default_rng(options.seed)
    ranks = options.ranks or 64
    lines = [FIRST_LINE, f"# alltoall, seed {options.seed}"]
    for job in range(options.jobs):
        size = _drawn(options, 4 * 2**10, random)
        lines += [f"job {job + 1} {ranks}", f"repeat {options.iterations}"]
        lines += [*_phase(options, f"alltoall {size_text(size)}", size * (ranks - 1), "all"), "end"]
    return "\n".join(lines) + "\n"


PROGRAMS: dict[str, Callable[[ProgramOptions], str]] = {
    "alltoall": alltoall,
    "cartesian": cartesian,
    "cgd128": cgd128,
    "wrf256": wrf256,
}
"""Name of a program to the generator of its trace."""


def _fixed(
    options: ProgramOptions, name: str, ranks: int, phases: list[list[tuple[int, int]]], own: float
) -> str:
    """A program with a fixed number of ranks; messages to the same rank are left out."""
    if options.ranks not in (0, ranks):
        raise InputError(f"{name} has {ranks} ranks", remedy="leave --ranks out")
    random = np.random.default_rng(options.seed)
    lines = [FIRST_LINE, f"# {name}"]
    for job in range(options.jobs):
        lines += [f"job {job + 1} {ranks}", f"repeat {options.iterations}"]
        for number, pairs in enumerate(phases, 1):
            size = _drawn(options, own, random)
            sends = "\n".join(f"send {a} {b} {size_text(size)}" for a, b in pairs if a != b)
            most = max(np.bincount([a for a, b in pairs if a != b]))
            lines += _phase(options, sends, size * int(most), f"phase{number}")
        lines.append("end")
    return "\n".join(lines) + "\n"


def _phase(options: ProgramOptions, sends: str, most: float, key: str) -> list[str]:
    """`most`: bytes of the busiest rank."""
    wait = _computed(options, most)
    compute = [f"compute {time_text(wait)}"] if wait else []
    return [*compute, f"request {key}", sends, "barrier", "done"]


def _drawn(options: ProgramOptions, own: float, random: np.random.Generator) -> float:
    if options.sizes is None:
        return own
    least, most = options.sizes
    return least * 2.0 ** int(random.integers(0, int(np.log2(most / least)) + 1))


def _sent(options: ProgramOptions, size: float) -> float:
    return size * 8e-9 / options.rate


def _computed(options: ProgramOptions, size: float) -> float:
    return _sent(options, size) * (1 / options.utilization - 1)
