"""`[watch]`: what ports count, for an agent that watches the cables."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from sar_agent.config.types import ABSOLUTE, HTTP_URL, Section


class WatchConfig(Section, frozen=True):
    """Watch: which cables count errors or wait, by what a Prometheus server or a dump says."""

    counters: str = Field(
        default="",
        description="where counters of ports are read: the address of a Prometheus server that "
        "scrapes infiniband_exporter, node_exporter or UFM Telemetry (http://prometheus:9090), or "
        "a dump of perfquery or ibdiagnet2 that is written again and again. Without it, cables "
        "that are missing or unlike their like are watched all the same",
    )
    window_seconds: Annotated[float, Field(ge=30, le=86400)] = Field(
        default=180.0,
        description="length of a window; a cable is bad by what its ports counted in one",
    )
    wait_bytes: Literal[8, 32] = Field(
        default=8,
        description="bytes that a tick of PortXmitWait stands for: 8 on today's switches and HCAs, "
        "32 on older ones (NVIDIA/ib-traffic-monitor, issue 3)",
    )

    @field_validator("counters")
    @classmethod
    def _place(cls, value: str) -> str:
        if value.startswith(("http://", "https://")):
            if not HTTP_URL.fullmatch(value):
                raise ValueError("write http://HOST:PORT, without user or query")
        elif value and not value.startswith("/"):
            raise ValueError(ABSOLUTE)
        return value
