"""The running jobs: `Job`, `JobMix`, their sources and their traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sar_agent.jobs.model import Job, JobMix

__all__ = ["Job", "JobMix"]


def __getattr__(name: str) -> Any:
    """`Job` and `JobMix`, when they are first used: sources of jobs do not need numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sar_agent.jobs import model

    return getattr(model, name)
