"""The source of jobs that the settings name."""

from __future__ import annotations

from pathlib import Path

from sar_agent.config.slurm import SlurmConfig
from sar_agent.jobs.source import JobSource


def job_source(config: SlurmConfig) -> JobSource:
    """Raises `InputError` where pyslurm is asked for and not installed."""
    # Imported where they are used: each needs things that the others' sites may not have.
    if config.source == "slurmrestd":
        from sar_agent.slurm.slurmrestd import SlurmrestdSource

        return SlurmrestdSource(
            config.slurmrestd_socket,
            config.slurmrestd_user,
            Path(config.slurmrestd_jwt_file) if config.slurmrestd_jwt_file else None,
            config.deadline_seconds,
            config.states,
        )
    if config.source == "pyslurm":
        from sar_agent.slurm.pyslurm_source import PyslurmSource

        return PyslurmSource(config.states)
    from sar_agent.slurm.squeue import SqueueSource

    return SqueueSource(config.squeue, config.deadline_seconds, config.states)
