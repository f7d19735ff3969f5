"""`[standby]`: a second OpenSM with an agent of its own, which takes over from this one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from sar_agent.config.types import Address, Section, host_port


class StandbyConfig(Section, frozen=True):
    """Standby: the agent of a second OpenSM. Each agent keeps a copy of the other's state, and only
    the one whose OpenSM is the master installs (see docs/ha.md)."""

    peer: Address = Field(
        default="",
        description='address of the other agent, such as sm2:9779. "" if this is the only agent',
    )
    listen: Address = Field(
        default="", description="address at which the other agent reads, such as 0.0.0.0:9779"
    )
    certificate: str = Field(
        default="",
        description="PEM file with a private key and its certificate, the same on both machines; "
        "an agent that does not have it gets nothing. docs/ha.md has the command that makes it",
    )
    interval_seconds: Annotated[float, Field(ge=0.1, le=60)] = Field(
        default=1.0, description="time between two readings of the other agent's state"
    )

    @model_validator(mode="after")
    def _is_complete(self) -> StandbyConfig:
        given = {"peer": self.peer, "listen": self.listen, "certificate": self.certificate}
        if missing := [name for name, value in given.items() if not value]:
            if len(missing) < len(given):
                raise ValueError(f"{' and '.join(missing)} is missing; set all three, or none")
        elif not self.certificate.startswith("/"):
            raise ValueError("certificate: give an absolute path")
        return self

    @property
    def enabled(self) -> bool:
        """Whether there is a second agent."""
        return bool(self.peer)

    @property
    def peer_host_port(self) -> tuple[str, int]:
        """Host and port of `peer`, which is set."""
        return host_port(self.peer)

    @property
    def listen_host_port(self) -> tuple[str, int]:
        """Host and port of `listen`, which is set."""
        return host_port(self.listen)
