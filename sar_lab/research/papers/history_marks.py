"""Properties of a job history that sar-2016 states of its machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.fabric import Fabric
from sar_lab.history import JobHistory, place_history

LOOK = 300.0
"""Seconds between two polls of the paper's filter tool (Section 4.3.1)."""
DAY = 86400.0


@dataclass(frozen=True)
class Marks:
    """The properties of one history on one fabric."""

    jobs: int
    multi_switch_share: float
    """Of all jobs that ran (Section 1)."""
    changes_per_day: tuple[int, ...]
    """For each whole day, the polls that found other multi-switch jobs than the previous one
    (4.3.2)."""
    hosts_per_job: float
    """Of multi-switch jobs, on average."""
    leaves_per_job: float

    @property
    def changes_mean(self) -> float:
        return float(np.mean(self.changes_per_day)) if self.changes_per_day else 0.0

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "changes_mean": self.changes_mean}


def marks_of(fabric: Fabric, history: JobHistory, begin: float, end: float) -> Marks:
    """`begin` and `end` (Unix seconds) say which days count."""
    placed = place_history(history, fabric)
    multi = [parts for parts in placed.parts if parts]
    moments = placed.change_times
    moments = moments[(moments > begin) & (moments < end)]
    # A job that comes and goes between two looks is not seen; few do.
    looks = np.unique(np.ceil((moments - begin) / LOOK))
    days = int((end - begin) // DAY)
    a_day = np.bincount((looks * LOOK // DAY).astype(np.int64), minlength=days)[:days]
    terminals = [np.concatenate([part.terminals for part in parts]) for parts in multi]
    leaves = [len(np.unique(fabric.terminal_switch[each])) for each in terminals]
    return Marks(
        jobs=history.jobs,
        multi_switch_share=len(multi) / max(1, history.jobs),
        changes_per_day=tuple(a_day.tolist()),
        hosts_per_job=float(np.mean([len(each) for each in terminals])) if multi else 0.0,
        leaves_per_job=float(np.mean(leaves)) if multi else 0.0,
    )
