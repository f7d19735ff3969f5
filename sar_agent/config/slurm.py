"""`[slurm]`: where the running jobs are read."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from sar_agent.config.types import ABSOLUTE, HTTP_URL, Command, Deadline, Section, Word
from sar_agent.jobs.source import source_names
from sar_agent.slurm.states import RUNNING_STATES, STATES


class SlurmConfig(Section, frozen=True):
    """Slurm: where the running jobs are read."""

    source: Word = Field(
        default="squeue",
        description=f"how the queue is read: {', '.join(source_names())}. file reads jobs_file, "
        "slurmrestd asks rest_url over HTTP; neither needs Slurm on this machine. pyslurm takes "
        "the least work and requires "
        "`pip install 'sar-agent[pyslurm]'` in your Slurm's major.minor version",
    )
    jobs_file: str = Field(
        default="",
        description="source file: what squeue printed (docs/file-formats.md), written again and "
        "again by somebody else. A file older than 15 minutes is stale: status, the page and an "
        "alert say so",
    )
    rest_url: str = Field(
        default="", description="source slurmrestd: its address, such as http://slurmctld:6820"
    )
    rest_token_file: str = Field(
        default="",
        description="source slurmrestd: file with a token (JWT), as `scontrol token` prints it; it "
        "is read again for each poll, so it can be renewed at any time",
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

    @field_validator("jobs_file", "rest_token_file")
    @classmethod
    def _absolute_path(cls, value: str) -> str:
        if value and not value.startswith("/"):
            raise ValueError(ABSOLUTE)
        return value

    @field_validator("rest_url")
    @classmethod
    def _url(cls, value: str) -> str:
        if value and not HTTP_URL.fullmatch(value):
            raise ValueError("write http://HOST:PORT or https://HOST:PORT, without user or query")
        return value

    @model_validator(mode="after")
    def _source_is_named(self) -> SlurmConfig:
        for source, key in (("file", "jobs_file"), ("slurmrestd", "rest_url")):
            if self.source == source and not getattr(self, key):
                raise ValueError(f'source = "{source}" needs {key}; set it')
        return self

    @field_validator("states")
    @classmethod
    def _known_states(cls, value: list[str]) -> list[str]:
        if unknown := sorted(set(value) - STATES):
            known = ", ".join(sorted(STATES))
            raise ValueError(f"{', '.join(unknown)}: not a job state of Slurm; there are {known}")
        return value
