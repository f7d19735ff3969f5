"""What a five-phase update reports to a metrics system; `telemetry.metrics.Metrics` provides it."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import Counter, Gauge, Histogram


class UpdateCounts(Protocol):
    """The metrics that the driver of an update sets."""

    @property
    def subscribers(self) -> Gauge:
        """Number of subscribers."""
        ...

    @property
    def update_phase(self) -> Gauge:
        """Index of the phase in `Phase`."""
        ...

    @property
    def update_phase_seconds(self) -> Histogram:
        """Durations, by phase."""
        ...

    @property
    def updates(self) -> Counter:
        """Updates, by method and result."""
        ...
