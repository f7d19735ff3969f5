"""The contention of collectives on finished tables, exactly.

As `quality/collective_contention.py` defines it, computed here from the engine's own sums: all jobs
run the same collective and go on at the same pace. A channel carries the job's own messages of its
phase and, of each other job, the mean over its phase and its next one. The phase takes as long as
the largest such sum on the channels of its messages, as a share of what the channel carries; at
least 1. Of a pairwise exchange, the next phase is the next of those that are looked at.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32, U8
from sar_agent.routing.collectives.phase_demand import PhaseDemand
from sar_agent.routing.collectives.ways import paths_of
from sar_agent.routing.tree_moves import Number
from sar_agent.util.kernels import kernel, kernel_part


def contention_of(fabric: Fabric, width: F64, demand: PhaseDemand, egress: U8) -> F64:
    """float64[P, J]: the contention of each collective and job, at least 1. `width` float64[C]:
    messages at full speed that a channel carries at once."""
    result = np.ones((demand.begin.shape[0], demand.jobs))
    _contention(demand, paths_of(fabric, demand, egress), 1.0 / width, result)
    return result


@kernel
def _contention(
    demand: PhaseDemand, path: I32, narrow: F64, result: F64
) -> None:  # pragma: no cover
    collectives, jobs = result.shape
    total = np.zeros(len(narrow))
    own = np.zeros(len(narrow))
    for p in range(collectives):
        most = 0
        for j in range(jobs):
            most = max(most, demand.begin[p, j + 1] - demand.begin[p, j])
        if most == 0:
            continue
        result[p] = 0.0
        for t in range(most):
            at = (t + 0.5) / most
            for j in range(jobs):
                now, then = _phases(demand, p, j, at)
                if now >= 0:
                    half = 0.5 * demand.share[now] / demand.mean[now]
                    _add(demand, path, now, half, total)
                    _add(demand, path, then, half, total)
            for j in range(jobs):
                now, then = _phases(demand, p, j, at)
                worst = 1.0
                if now >= 0:
                    half = 0.5 * demand.share[now] / demand.mean[now]
                    _add(demand, path, now, 1.0 - half, own)
                    _add(demand, path, then, -half, own)
                    for k in range(demand.sent[now], demand.sent[now + 1]):
                        i = demand.sent_item[k]
                        for h in range(path.shape[1]):
                            c = path[i, h]
                            if c < 0:
                                break
                            worst = max(worst, (own[c] + total[c]) * narrow[c])
                    _add(demand, path, now, 0.0, own)
                    _add(demand, path, then, 0.0, own)
                result[p, j] += worst / most
            total[:] = 0.0


@kernel_part
def _phases(
    demand: PhaseDemand, p: int, j: int, at: float
) -> tuple[Number, Number]:  # pragma: no cover
    """The phase of a job at a moment, and its next one; -1 for a job without any."""
    first = demand.begin[p, j]
    count = demand.begin[p, j + 1] - first
    if count == 0:
        return -1, -1
    k = np.int64(at * count)
    return first + k, first + (k + 1) % count


@kernel
def _add(
    demand: PhaseDemand, path: I32, g: Number, share: float, carried: F64
) -> None:  # pragma: no cover
    """Adds what a phase sends, times `share`; 0: sets its channels to 0."""
    for k in range(demand.sent[g], demand.sent[g + 1]):
        i = demand.sent_item[k]
        for h in range(path.shape[1]):
            c = path[i, h]
            if c < 0:
                break
            if share == 0.0:
                carried[c] = 0.0
            else:
                carried[c] += demand.sent_amount[k] * share
