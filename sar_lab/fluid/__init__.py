"""How long jobs' traffic takes, in a fluid model: concurrent flows share links max-min fairly."""

from sar_lab.fluid.flow_events import TooLong
from sar_lab.fluid.job_patterns import PATTERNS
from sar_lab.fluid.simulate_jobs import JobTimes, job_times

__all__ = ["PATTERNS", "JobTimes", "TooLong", "job_times"]
