"""`ProgramTrace`: programs as sequences of phases.

A phase lies between two barriers: the program computes, requests a routing key if it uses one, and
then sends all messages of the phase together. The next phase begins when the last message has
arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import I32

F64 = NDArray[np.float64]


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
    pairs: I32, size: float | F64, *, compute: float = 0.0, key: str | None = None
) -> ProgramPhase:
    """A phase; messages from a rank to itself are left out."""
    other = pairs[:, 0] != pairs[:, 1]
    sizes = np.broadcast_to(np.asarray(size, np.float64), len(pairs))[other]
    return ProgramPhase(compute, key, pairs[other], sizes)
