"""`[keys]`: routing keys, for applications that declare their traffic."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sar_agent.config.types import Deadline, Section

_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"


class KeysConfig(Section, frozen=True):
    """Routing keys: separate routes for jobs that declare their traffic, on spare LID offsets (see
    `sar-agent key plan`)."""

    enabled: bool = Field(default=True, description="whether jobs may have routing keys")
    lease_seconds: Deadline = Field(
        default=3600.0,
        description="lifetime of a key that an application requests, unless it is renewed. A key "
        "of --sar-traffic lasts as long as its job",
    )
    variables: list[Annotated[str, Field(pattern=_NAME)]] = Field(
        default=["UCX_IB_LID_PATH_BITS"],
        description="environment variables of tasks that are set to the LID offset of the job's "
        "key. The SPANK plugin's option allow must list them, too",
    )
