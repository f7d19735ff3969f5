"""How long jobs' traffic takes: a fluid model, concurrent flows share links max-min fairly."""

from sar_lab.fluid.compare import JobTimes, job_times
from sar_lab.fluid.patterns import PATTERNS

__all__ = ["PATTERNS", "JobTimes", "job_times"]
