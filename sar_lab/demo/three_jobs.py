"""The opening example of sar-2016 (Fig. 2): three equal jobs on a two-level tree.

The paper prints neither the tree nor the placement, so these are ours: 96 hosts and three jobs of
12 hosts drawn at random. The other hosts send nothing across a switch.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_lab.demo.engine_results import Comparison, compare_engines

SPEC = "xgft:2;12,8;1,8"
HOSTS_PER_JOB = 12
SEED = 1


def three_equal_jobs(fabric: Fabric, hosts: int = HOSTS_PER_JOB, seed: int = SEED) -> JobMix:
    """Jobs 1, 2 and 3 on hosts drawn without replacement."""
    order = np.random.default_rng(seed).permutation(fabric.terminals)
    return JobMix.of(make_job(str(j + 1), order[j * hosts : (j + 1) * hosts]) for j in range(3))


def compare_three_jobs() -> Comparison:
    """The three jobs under every engine."""
    fabric = xgft_fabric(SPEC)
    return compare_engines(fabric, three_equal_jobs(fabric))
