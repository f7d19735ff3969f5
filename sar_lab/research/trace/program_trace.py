"""`ProgramTrace`: programs as sequences of phases.

A phase lies between two barriers: the program computes, requests a routing key if it uses one, and
then sends all messages of the phase together. The next phase begins when the last message has
arrived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import I32

F64 = NDArray[np.float64]
WIDTH = math.sqrt(3.0)
"""Standard deviations from the mean of a uniform distribution to its ends."""


@dataclass(frozen=True, eq=False)
class ProgramPhase:
    """N messages after some computation; N may be 0."""

    compute: float
    """Seconds before the sends."""
    key: str | None
    """The routing key of the messages (RODRequest in the paper); None: the default routes."""
    pairs: I32
    """int32[N, 2]: from rank, to another rank."""
    size: F64
    """float64[N], bytes, above 0."""
    spread: float = 0.0
    """The standard deviation of `compute`, which is uniform."""


@dataclass(frozen=True, eq=False)
class Program:
    """The program of one job."""

    job: str
    ranks: int
    start: float
    """Seconds."""
    phases: tuple[ProgramPhase, ...]
    """Repeated phases are the same object."""


@dataclass(frozen=True, eq=False)
class ProgramTrace:
    """Programs that run at the same time."""

    name: str
    """The name for error messages."""
    programs: tuple[Program, ...]


def make_phase(
    pairs: I32,
    size: float | F64,
    *,
    compute: float = 0.0,
    spread: float = 0.0,
    key: str | None = None,
) -> ProgramPhase:
    """A phase; messages from a rank to itself are left out."""
    other = pairs[:, 0] != pairs[:, 1]
    sizes = np.broadcast_to(np.asarray(size, np.float64), len(pairs))[other]
    return ProgramPhase(compute, key, pairs[other], sizes, spread)


def with_drawn_times(trace: ProgramTrace, seed: int) -> ProgramTrace:
    """The trace with a computation drawn for each phase that has a standard deviation, anew in each
    repeat and for each job.

    **Weak spot:** all ranks of a job take the same time; routing-keys-2017 does not print whether
    each draws its own.
    """

    def drawn(random: np.random.Generator, phase: ProgramPhase) -> ProgramPhase:
        if not phase.spread:
            return phase
        compute = phase.compute + WIDTH * phase.spread * random.uniform(-1.0, 1.0)
        return replace(phase, compute=max(0.0, compute), spread=0.0)

    programs = []
    for number, program in enumerate(trace.programs):
        random = np.random.default_rng((seed, number))
        phases = tuple(drawn(random, phase) for phase in program.phases)
        programs.append(replace(program, phases=phases))
    return replace(trace, programs=tuple(programs))
