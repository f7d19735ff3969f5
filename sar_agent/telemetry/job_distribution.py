"""A histogram of the jobs that run now."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector


class JobDistribution(Collector):
    """A histogram with one value per running job. Unlike a histogram of events it goes up and down,
    so query it without rate(): histogram_quantile(0.5, sar_agent_job_links_bucket)."""

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:
        self._name, self._help, self._bounds = name, help, bounds
        self._values: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def set(self, routes: str, values: Iterable[float] | None) -> None:
        """Sets the values of the jobs under `routes`; None removes the series."""
        with self._lock:
            self._values.pop(routes, None)
            if values is not None:
                self._values[routes] = sorted(values)

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """Called by prometheus_client when the collector is registered."""
        return [HistogramMetricFamily(self._name, self._help, labels=["routes"])]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """Called by prometheus_client in the thread of a scrape."""
        family = HistogramMetricFamily(self._name, self._help, labels=["routes"])
        with self._lock:
            for routes, values in sorted(self._values.items()):
                cumulative = [
                    (str(float(bound)), float(sum(value <= bound for value in values)))
                    for bound in self._bounds
                ]
                buckets = [*cumulative, ("+Inf", float(len(values)))]
                family.add_metric([routes], buckets, sum_value=sum(values))
        return [family]
