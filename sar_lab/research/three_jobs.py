"""The opening example of sar-2016 (Fig. 2): three equal jobs on hosts drawn at random."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job


def three_equal_jobs(fabric: Fabric, hosts: int, seed: int) -> JobMix:
    """Jobs 1, 2 and 3 on hosts drawn without replacement."""
    order = np.random.default_rng(seed).permutation(fabric.terminals)
    return JobMix.of(make_job(str(j + 1), order[j * hosts : (j + 1) * hosts]) for j in range(3))
