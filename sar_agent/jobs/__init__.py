"""The running jobs: `Job`, `JobMix`, their sources and their traffic."""

from sar_agent.jobs.model import Job, JobMix

__all__ = ["Job", "JobMix"]
