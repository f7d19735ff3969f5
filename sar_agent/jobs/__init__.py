"""Who runs where: `Job`, `JobMix`, and the sources that tell of them."""

from sar_agent.jobs.model import Job, JobMix

__all__ = ["Job", "JobMix"]
