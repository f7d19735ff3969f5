"""The one objective by which tables are compared, here and by the agent.

**The mean over collectives of the time that they take, each as a share of that on other tables; a
collective that takes longer counts its loss `LOSS` times.** The time of a collective is the mean
over jobs of its contention.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, I32

LOSS = 3.0
EQUAL = 1.002
"""Times as long: so much is no loss."""


def times_of(contention: F64, whole: I32) -> F64:
    """float64[P]: the time of each collective; `contention` float64[P, J] of parts of jobs, and the
    jobs `whole` int32[J] that they are parts of: a job goes on when all of its rails are done."""
    if not contention.shape[1]:
        return np.ones(len(contention))
    most = np.zeros((len(contention), int(whole.max()) + 1))
    np.maximum.at(most.T, whole, contention.T)
    times: F64 = most.mean(axis=1)
    return times


def relative_time(times: F64, other: F64) -> float:
    """The objective: below 1, tables with `times` float64[P] serve jobs better than those with
    `other`."""
    ratio = times / other
    return float((ratio + (LOSS - 1) * np.maximum(ratio - EQUAL, 0.0)).mean())


def gain_of(times: F64, other: F64) -> float:
    """What jobs gain by tables with `times` float64[P] that run the collective that gains most, as
    a share of its time on the other tables; less the largest loss, counted `LOSS` times."""
    ratio = times / other
    lost = max(0.0, float(ratio.max(initial=0.0)) - EQUAL)
    return 1.0 - float(ratio.min(initial=1.0)) - LOSS * lost
