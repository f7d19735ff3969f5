"""`[slurm]`: where the running jobs are read."""

from __future__ import annotations

from pydantic import Field, field_validator

from sar_agent.config.types import Command, Deadline, Section, Word
from sar_agent.jobs.source import source_names
from sar_agent.slurm.states import RUNNING_STATES, STATES


class SlurmConfig(Section, frozen=True):
    """Slurm: where the running jobs are read."""

    source: Word = Field(
        default="squeue",
        description=f"how the queue is read: {', '.join(source_names())}. pyslurm takes the "
        "least work and requires "
        "`pip install 'sar-agent[pyslurm]'` in your Slurm's major.minor version",
    )
    squeue: Command = Field(
        default=["squeue"],
        description="command line of squeue, to which the agent adds options. What it writes on "
        "stderr makes it a failed poll. Where it shows no job any more, sinfo is asked whether the "
        "jobs' nodes are allocated: the same command line with sinfo in place of squeue",
    )
    deadline_seconds: Deadline = Field(
        default=10.0, description="time for one reading of the queue, including retries"
    )
    states: list[str] = Field(
        default=sorted(RUNNING_STATES), description="job states that count as running"
    )
    partition_hints: dict[str, str] = Field(
        default={},
        description="traffic hint for jobs that give none, by Slurm partition: "
        '{ debug = "weight=0.1" } assumes a tenth of full speed',
    )
    topology_conf: str = Field(
        default="/etc/slurm/topology.conf",
        description="Slurm's topology file, which tells the leaf switches. If it is empty or "
        "missing, those of the fabric are used",
    )

    @field_validator("source")
    @classmethod
    def _known_source(cls, value: str) -> str:
        if value not in source_names():
            raise ValueError(f"no such job source; there are {', '.join(source_names())}")
        return value

    @field_validator("states")
    @classmethod
    def _known_states(cls, value: list[str]) -> list[str]:
        if unknown := sorted(set(value) - STATES):
            known = ", ".join(sorted(STATES))
            raise ValueError(f"{', '.join(unknown)}: not a job state of Slurm; there are {known}")
        return value
