"""The collectives that a job runs which declares nothing, and their messages between terminals.

Programs spend most of their time in few collectives: rings (NCCL; large all-reduces, all-gathers
and reduce-scatters of MPICH and Open MPI), recursive doubling (small all-reduces, barriers),
pairwise exchanges and halos. Which of them a job runs is not known, so routes are judged under each
of them in turn, with all jobs at the same one. A job that declares its traffic runs that in all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.declared import declared_phases
from sar_agent.demand.patterns import RankPhase, rank_phases
from sar_agent.demand.rank_order import ranks_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64
from sar_agent.jobs.model import Job, JobMix

AT_ONCE = "alltoall"
"""All messages at once: a load. It has too many messages to list them."""
PAIRWISE = "pairwise"
RING = "ring"
COLLECTIVES = {
    AT_ONCE: "all at once",
    PAIRWISE: "pairwise",
    RING: "ring",
    "bidirectional-ring": "ring in both directions",
    "recursive-doubling": "recursive doubling",
    "bruck": "Bruck, dissemination",
    "double-tree": "double binary tree",
    "halo2d": "halo in two dimensions",
    "halo3d": "halo in three dimensions",
}
"""Words of `traffic.txt`, and what reports call them, in the order of reports."""


PHASES = 32
"""The most moments of a collective, and phases of a pairwise exchange, that are looked at."""
GOLDEN = 0.6180339887498949
"""The fractional part of its multiples fills an interval more evenly than that of any other."""


def moments(most: int, phases: int = PHASES) -> NDArray[np.float64]:
    """float64[·], ascending, in [0, 1): moments between the first and the last of at most `most`
    phases, so that no period of tables (a leaf's hosts) hides between them. `phases`: at most so
    many; 0: one for each phase."""
    if not 0 < phases < most:
        return (np.arange(most) + 0.5) / most
    at = np.arange(phases)
    return (at + at * GOLDEN % 1) / phases


class Messages(NamedTuple):
    """The messages of all jobs in one collective: M messages in G phases; J jobs."""

    source: I32
    """int32[M]: terminals, of live jobs in the order of ranks (`rank_order.py`)."""
    destination: I32
    """int32[M]"""
    weight: NDArray[np.float64]
    """float64[M]: share of its rate at which the source sends the message."""
    phase: I64
    """int64[G + 1] into the messages."""
    job: I64
    """int64[J + 1] into the phases: job j has phases job[j] … job[j + 1] - 1."""


def messages_of(fabric: Fabric, mix: JobMix, collective: str) -> Messages:
    """The messages of the jobs of `mix`, all of which run `collective`, a key of `COLLECTIVES`
    but for `AT_ONCE`; jobs that declare traffic run theirs. Of a pairwise exchange all phases are
    listed, N (N - 1) messages."""
    ranks = ranks_of(fabric, mix)
    phases: list[RankPhase] = []
    first, job = [], [0]
    for j, each in enumerate(mix.jobs):
        mine = job_phases(each, collective)
        phases += mine
        first += [int(mix.offset[j])] * len(mine)
        job.append(len(phases))
    sizes = [len(phase.source) for phase in phases]
    at = np.repeat(np.array(first, np.int64), sizes)
    none = np.empty(0, np.int32)
    return Messages(
        ranks[at + np.concatenate([none, *(phase.source for phase in phases)])],
        ranks[at + np.concatenate([none, *(phase.destination for phase in phases)])],
        np.repeat(np.array([phase.weight for phase in phases], np.float64), sizes),
        np.cumsum([0, *sizes]),
        np.array(job, np.int64),
    )


def job_phases(job: Job, collective: str) -> tuple[RankPhase, ...]:
    """The phases in which the job's ranks send: those of the traffic that it declares, else of the
    collective. Raises `InputError` for all messages at once of more ranks than can be listed."""
    return declared_phases(job) or _usual(collective, len(job.terminals))


@lru_cache(maxsize=4096)
def _usual(collective: str, size: int) -> tuple[RankPhase, ...]:
    return tuple(phase for phase in rank_phases(collective, size) if len(phase.source))
