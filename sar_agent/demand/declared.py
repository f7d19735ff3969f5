"""The traffic that a job declares, as phases between its ranks, where it fits the job.

A grid may need more ranks than the job has, a butterfly another number of them. Such a job is taken
as one that declares nothing, and the log says so: a sentence for each job, not one for each reader.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from sar_agent.demand.patterns import RankPhase, rank_phases
from sar_agent.errors import InputError
from sar_agent.jobs.model import Job

log = logging.getLogger(__name__)


def declared_phases(job: Job) -> tuple[RankPhase, ...] | None:
    """The phases in which ranks send; None where nothing is declared that says who sends to whom,
    and where that does not fit the job, or leaves no rank a message."""
    if not job.declared:
        return None
    found = _phases(job.declared, len(job.terminals))
    if isinstance(found, str):
        _say(job.id, job.declared, ", on a rail" if job.part_of else "", found)
        return None
    return found


@lru_cache(maxsize=4096)
def _phases(pattern: str, size: int) -> tuple[RankPhase, ...] | str:
    """The phases, or why there are none."""
    try:
        phases = tuple(phase for phase in rank_phases(pattern, size) if len(phase.source))
    except InputError as error:
        return error.what
    return phases or f"of its {size} ranks none sends to another"


@lru_cache(maxsize=4096)
def _say(job: str, pattern: str, where: str, why: str) -> None:
    log.warning(
        "job %s declares %s%s, which does not fit: %s; it counts as a job that declares nothing",
        *(job, pattern, where, why),
    )
