"""`[counters]`: what the ports of the fabric have counted, beside what was predicted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sar_agent.config.types import Section

Source = Literal["off", "plugin", "prometheus", "files"]
Series = Literal["infiniband_exporter", "ufm"]


class CountersConfig(Section, frozen=True):
    """Counters of ports: the bytes that each link carried are compared with the predicted load.
    They change no route."""

    source: Source = Field(
        default="off",
        description="where counters are read: plugin is OpenSM's PerfMgr (perfmgr TRUE in "
        "opensm.conf), prometheus a Prometheus server, files the output of perfquery or "
        "ibdiagnet2. off compares nothing",
    )
    prometheus_url: str = Field(
        default="http://127.0.0.1:9090",
        pattern=r"^https?://[^\s?#]+$",
        description="address of the Prometheus server",
    )
    prometheus_series: Series = Field(
        default="infiniband_exporter",
        description="names of the series in Prometheus: those of infiniband_exporter, or those of "
        "UFM Telemetry",
    )
    files: str = Field(
        default="",
        description="glob pattern of the files, such as /var/lib/counters/*.txt; the two newest "
        "are the begin and the end of a window",
    )
    window_seconds: Annotated[float, Field(ge=1, le=86400)] = Field(
        default=180.0,
        description="length of a window of prometheus. PerfMgr's is its perfmgr_sweep_time_s, and "
        "that of files the time between two files",
    )
    hot_load: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.3,
        description="share of its speed from which a link counts as hot. A hot link that carried "
        "hot_factor times the traffic that the known jobs explain is reported by name",
    )
    hot_factor: Annotated[float, Field(gt=1, le=1000)] = Field(
        default=2.0, description="see hot_load"
    )

    @model_validator(mode="after")
    def _files_are_named(self) -> CountersConfig:
        if self.source == "files" and not self.files.startswith("/"):
            raise ValueError(
                'files is needed by source = "files"; give an absolute pattern such as '
                "/var/lib/counters/*.txt"
            )
        return self
