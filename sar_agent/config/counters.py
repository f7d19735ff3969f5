"""`[counters]`: what the ports of the fabric have counted, beside what was predicted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sar_agent.config.types import Deadline, Section

Source = Literal["off", "plugin", "prometheus", "files"]
Series = Literal["infiniband_exporter", "ufm"]
TrialMeasure = Literal["load", "waits"]


class CountersConfig(Section, frozen=True):
    """Counters of ports: the bytes that each link carried are compared with the predicted load.
    They change routes only with weights = "use"."""

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
    deadline_seconds: Deadline = Field(default=10.0, description="time for an answer of Prometheus")
    hot_load: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.3,
        description="share of its speed from which a link counts as hot. A hot link that carried "
        "hot_factor times the traffic that the known jobs explain is reported by name",
    )
    hot_factor: Annotated[float, Field(gt=1, le=1000)] = Field(
        default=2.0, description="see hot_load"
    )
    weights: Literal["off", "observe", "use"] = Field(
        default="off",
        description="observe measures how much of their full speed the ports of each job send, and "
        "shows it in `sar-agent counters`. use also makes routes for these weights, in steps of 2 "
        "and at least 1/16, where a user has said no `sar:weight=`",
    )
    weights_smoothing_seconds: Annotated[float, Field(ge=1, le=86400)] = Field(
        default=600.0, description="time over which the measured weights are averaged"
    )
    weights_interval_seconds: Annotated[float, Field(ge=1, le=86400 * 30)] = Field(
        default=1800.0, description="least time between two reroutes because of measured weights"
    )
    weights_min_gain: Annotated[float, Field(ge=0.001, le=1)] = Field(
        default=0.05,
        description="relative reduction of the largest load, as the measured weights give it, that "
        "justifies a reroute because of them: 0.05 is a twentieth",
    )
    trial_windows: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="reroutes for which neither jobs nor cables gave the reason (counted weights, "
        "better routes found) stay for so many windows, and then go back unless ports counted "
        "better than before. At least 4; 0 makes no trials",
    )
    trial_measure: TrialMeasure = Field(
        default="load",
        description="what has to get lower in a trial: load is the share of its speed that the "
        "fullest link carried, by the mean over links; waits is PortXmitWait for each GB",
    )

    @model_validator(mode="after")
    def _a_trial_can_be_judged(self) -> CountersConfig:
        if 0 < self.trial_windows < 4:
            raise ValueError(
                f"trial_windows = {self.trial_windows} is too few to tell better from chance; give "
                "at least 4, or 0 for no trials"
            )
        if self.trial_windows and self.source == "off":
            raise ValueError(
                'trial_windows needs counters; set source = "plugin", "prometheus" or "files"'
            )
        return self

    @model_validator(mode="after")
    def _files_are_named(self) -> CountersConfig:
        if self.source == "files" and not self.files.startswith("/"):
            raise ValueError(
                'files is needed by source = "files"; give an absolute pattern such as '
                "/var/lib/counters/*.txt"
            )
        return self
