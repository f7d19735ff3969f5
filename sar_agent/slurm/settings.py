"""The settings that Slurm's sources of jobs read: `[slurm]` of the configuration.

The configuration imports Slurm's states from this room, so the room cannot import its class.
"""

from __future__ import annotations

from typing import Protocol


class SlurmSettings(Protocol):
    """`config.SlurmConfig`, which describes each key."""

    squeue: list[str]
    deadline_seconds: float
    states: list[str]
    jobs_file: str
    rest_url: str
    rest_token_file: str
