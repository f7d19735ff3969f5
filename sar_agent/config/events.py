"""`[events]`: where Slurm's hooks are heard, and who is believed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from sar_agent.config.types import Address, Deadline, Section, Word, host_port

_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
_VALUE = r"^[A-Za-z0-9_.,:=+\-/@%]{0,255}$"


class EventsConfig(Section, frozen=True):
    """Where Slurm's hooks are heard; they only make the agent look sooner."""

    tcp_address: Address = Field(
        default="",
        description='where nodes tell of jobs, such as 0.0.0.0:9778; "" is nowhere',
    )
    socket: str = Field(
        default="events.sock",
        description='where this machine does: a path, or a name in agent.run_dir; "" is nowhere',
    )
    users: list[Word] = Field(
        default=["root", "slurm"],
        description="who may tell of any job: root and SlurmUser, names or uids",
    )
    munge_socket: str = Field(default="", description='munged\'s, if it is not the usual one; ""')
    patience_seconds: Deadline = Field(
        default=0.5, description="a connection that sends no whole line for so long is cut off"
    )
    spool: str = Field(
        default="",
        description="a folder of the agent's own in which nodes without munge leave messages;"
        ' "" is none',
    )
    environment: dict[
        Annotated[str, Field(pattern=_NAME)], Annotated[str, Field(pattern=_VALUE)]
    ] = Field(default={}, description='for tasks of all jobs: { UCX_IB_NUM_PATHS = "1" }')

    @field_validator("environment")
    @classmethod
    def _fits(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(len(name) + len(text) + 6 for name, text in value.items()) > 3900:
            raise ValueError("an answer has at most 4,000 bytes; give fewer names")
        return value

    @field_validator("spool")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        if value and not Path(value).is_absolute():
            raise ValueError("an absolute path is wanted: a daemon starts in no folder of yours")
        return value

    @property
    def tcp_host_port(self) -> tuple[str, int] | None:
        """None where there is to be none."""
        return host_port(self.tcp_address)

    def socket_path(self, run_dir: Path) -> Path | None:
        """None where there is to be none."""
        return run_dir / self.socket if self.socket else None
