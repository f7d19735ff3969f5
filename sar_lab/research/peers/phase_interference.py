"""How much longer phases of a job take because of other jobs, on a two-level tree.

In a phase every host of a job sends one message to the host that is k ranks further; k is drawn for
each job and phase. Messages that meet on a cable share it evenly, and the phase ends with its last
message: it takes as long as the most messages on a cable of the job. The same count with the job's
own messages alone is what it would take without others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Routes
from sar_lab.fluid.flow_links import F64


class PhaseTimes(NamedTuple):
    """Of J jobs, mean over phases; 1 is a phase without contention."""

    together: F64
    """float64[J]"""
    alone: F64
    """float64[J]"""

    @property
    def interference(self) -> F64:
        """float64[J]: how many times longer the job's phases take because of others."""
        return self.together / self.alone


def phase_times(fabric: Fabric, mix: JobMix, routes: Routes, phases: int, seed: int) -> PhaseTimes:
    """The times of `phases` phases. Raises ValueError where a path has more than two cables."""
    random = np.random.default_rng(seed)
    channel = routes.next_channel(fabric)
    together, alone = np.zeros((2, len(mix.jobs)))
    for _ in range(phases):
        source, to, job = [], [], []
        for j, one in enumerate(mix.jobs):
            hosts = one.terminals
            source.append(hosts)
            to.append(np.roll(hosts, -int(random.integers(1, len(hosts)))))
            job.append(np.full(len(hosts), j))
        s, d, of = map(np.concatenate, (source, to, job))
        here, there = fabric.terminal_switch[s], fabric.terminal_switch[d]
        away = here != there
        s, d, of, here, there = s[away], d[away], of[away], here[away], there[away]
        up = channel[d, here]
        down = channel[d, fabric.channel_target[up]]
        if (fabric.channel_target[down] != there).any():
            raise ValueError("a path has more than two cables")
        for times, number in ((together, np.zeros_like(of)), (alone, of)):
            most = np.ones(len(mix.jobs))
            for used in (up, down):
                key = number * fabric.channels + used
                _, place, count = np.unique(key, return_inverse=True, return_counts=True)
                np.maximum.at(most, of, count[place])
            times += most / phases
    return PhaseTimes(together, alone)
