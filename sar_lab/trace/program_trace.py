"""`ProgramTrace`: what programs do, phase after phase.

A phase is what lies between two barriers: the program computes, asks for the routing key of its
pattern where it wants one, then all sends of the phase start together; the next phase begins when
the last of them has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import I32

F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProgramPhase:
    """N messages, or none: computation alone."""

    compute: float
    """Seconds before the sends."""
    key: str | None
    """The routing key whose routes the sends take (RODRequest); None: the routes of everybody."""
    pairs: I32
    """int32[N, 2]: from rank, to another rank."""
    size: F64
    """float64[N], bytes, above 0."""


@dataclass(frozen=True, eq=False)
class Program:
    """One job."""

    job: str
    ranks: int
    start: float
    """Seconds."""
    phases: tuple[ProgramPhase, ...]
    """Repeated ones are the same object."""


@dataclass(frozen=True, eq=False)
class ProgramTrace:
    """Programs that run beside each other."""

    name: str
    """For messages."""
    programs: tuple[Program, ...]


def make_phase(
    pairs: I32, size: float | F64, *, compute: float = 0.0, key: str | None = None
) -> ProgramPhase:
    """Self-sends are left out."""
    other = pairs[:, 0] != pairs[:, 1]
    sizes = np.broadcast_to(np.asarray(size, np.float64), len(pairs))[other]
    return ProgramPhase(compute, key, pairs[other], sizes)
