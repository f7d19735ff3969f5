"""`[keys]`: routing keys, for applications that say what their traffic is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sar_agent.config.types import Deadline, Section

_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"


class KeysConfig(Section, frozen=True):
    """Routes of their own for jobs that name their traffic; OpenSM's lmc gives the room."""

    enabled: bool = Field(default=True, description="whether jobs may have routing keys at all")
    lease_seconds: Deadline = Field(
        default=3600.0,
        description="how long a key asked for by an application lasts, unless renewed",
    )
    lease_most_seconds: Annotated[float, Field(gt=0, le=86400 * 365)] = Field(
        default=86400.0, description="how long an application may ask for at once"
    )
    patience_seconds: Deadline = Field(
        default=10.0,
        description="a request waits so long for its job to be seen and OpenSM to be ready",
    )
    variables: list[Annotated[str, Field(pattern=_NAME)]] = Field(
        default=["UCX_IB_LID_PATH_BITS"],
        description="environment of tasks that is set to the LID offset of the job's key",
    )
