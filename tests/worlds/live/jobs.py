"""The final state of a job: it is COMPLETING first."""

from __future__ import annotations

import re

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster

NOT_YET = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "COMPLETING"}
"""What `scontrol show job` prints of a job that runs, or whose nodes are not given back."""


def ended(slurm: SlurmCluster, job: str, seconds: float = 60) -> str:
    """The line of `scontrol -o show job` once it tells an end state, within `seconds`."""
    shown = ""

    def over() -> bool:
        nonlocal shown
        shown = slurm.run("scontrol", "-o", "show", "job", job)
        return not set(re.findall(r"JobState=(\w+)", shown)) & NOT_YET

    assert wait_until(over, seconds, 0.1), shown
    return shown
