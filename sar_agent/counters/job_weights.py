"""The measured weights of jobs: what their ports sent, as a share of full speed, smoothed.

They are shown and change no route (docs/counters.md says why).
"""

from __future__ import annotations

import math

from sar_agent.counters.compare import job_shares
from sar_agent.counters.window import CounterWindow
from sar_agent.jobs import JobMix


class JobWeights:
    """The weights of running jobs, by their ids; those of ended jobs are forgotten."""

    def __init__(self, smoothing: float) -> None:
        """`smoothing` in seconds: a window that long counts 63 %, all before it 37 %."""
        self.smoothing = smoothing
        self.weights: dict[str, float] = {}
        self._seen: frozenset[str] = frozenset()

    def measured(self, mix: JobMix, window: CounterWindow) -> dict[str, float]:
        """Adds a window. A job that was not there at the window before is left out: it may have
        started within this one."""
        whole = self._seen
        self._seen = frozenset(job.id for job in mix.jobs)
        new = 1 - math.exp(-window.seconds / self.smoothing)
        weights = {job: old for job, old in self.weights.items() if job in self._seen}
        for job, share in job_shares(mix, window).items():
            if job in whole:
                old = weights.get(job)
                weights[job] = share if old is None else old + new * (share - old)
        self.weights = weights
        return weights
