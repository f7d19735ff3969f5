"""`[events]`: where the agent listens for messages about jobs, and which users it trusts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from sar_agent.config.types import Address, Section, Word, host_port

_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
_VALUE = r"^[A-Za-z0-9_.,:=+\-/@%]{0,255}$"


class EventsConfig(Section, frozen=True):
    """Events: where Slurm's hooks report that jobs start and end. They only make the agent read the
    queue sooner."""

    tcp_address: Address = Field(
        default="",
        description='address at which compute nodes report, such as 0.0.0.0:9778. "" opens no port',
    )
    socket: str = Field(
        default="events.sock",
        description="Unix socket at which this machine reports, a path or a name in agent.run_dir. "
        '"" creates none',
    )
    trusted_users: list[Word] = Field(
        default=["root", "slurm"],
        description="users, by name or uid, who may report on any job: root and SlurmUser",
    )
    munge_socket: str = Field(
        default="", description='socket of munged. "" is the one that libmunge was built for'
    )
    environment: dict[
        Annotated[str, Field(pattern=_NAME)], Annotated[str, Field(pattern=_VALUE)]
    ] = Field(
        default={},
        description='environment variables for the tasks of all jobs: { UCX_IB_NUM_PATHS = "1" }',
    )

    @field_validator("environment")
    @classmethod
    def _fits(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(len(name) + len(text) + 6 for name, text in value.items()) > 3900:
            raise ValueError("an answer has at most 4,000 bytes; set fewer variables")
        return value

    @property
    def has_address(self) -> bool:
        """Whether there is an address at which messages are answered."""
        return bool(self.tcp_address or self.socket)

    @property
    def tcp_host_port(self) -> tuple[str, int] | None:
        """Host and port of `tcp_address`; None if it is empty."""
        return host_port(self.tcp_address) if self.tcp_address else None

    def socket_path(self, run_dir: Path) -> Path | None:
        """Path of the Unix socket; None if it is empty."""
        return run_dir / self.socket if self.socket else None
