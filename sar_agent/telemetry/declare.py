"""Metrics as declarations in the body of a class.

    class QueueMetrics(MetricGroup):
        jobs_waiting = gauge("Jobs that wait.")
        refused = counter("Messages that were refused, by reason.", reason=Reason)

Each instance registers its own metrics in its `registry`. A keyword argument is a label with the
values whose series exist from the start, since rate() and alerts need a series before its first
event; a label without values, `reason=()`, has series only as they occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any, Generic, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

PREFIX = "sar_agent_"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper bounds of the buckets of histograms of times."""
M = TypeVar("M", bound=MetricWrapperBase)


class Declaration(Generic[M]):
    """One metric of a `MetricGroup`: its attribute is the metric itself, and gives it its name,
    unless there is another `name`."""

    def __init__(
        self, kind: type[M], help: str, labels: dict[str, Iterable[str]], name: str, **options: Any
    ) -> None:
        self.name, self._attribute = name, ""
        self._create = partial(kind, documentation=help, labelnames=tuple(labels), **options)
        self._initial = [tuple(map(str, values)) for values in product(*labels.values())]

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self._attribute = self.name or name, name

    def __get__(self, group: MetricGroup, owner: type) -> M:
        return cast(M, group.metrics[self._attribute])

    def register(self, group: MetricGroup) -> None:
        """Creates the metric, with the series that exist from the start."""
        metric = self._create(name=PREFIX + self.name, registry=group.registry)
        group.metrics[self._attribute] = metric
        for values in self._initial:
            if values:
                metric.labels(*values)


class MetricGroup:
    """Registers the metrics that its class and the classes below it declare."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics: dict[str, MetricWrapperBase] = {}
        for base in reversed(type(self).__mro__):
            for attribute in vars(base).values():
                if isinstance(attribute, Declaration):
                    attribute.register(self)


def gauge(help: str, *, name: str = "", **labels: Iterable[str]) -> Declaration[Gauge]:
    """A value that goes up and down."""
    return Declaration(Gauge, help, labels, name)


def counter(help: str, *, name: str = "", **labels: Iterable[str]) -> Declaration[Counter]:
    """A count of events; Prometheus sees it as NAME_total."""
    return Declaration(Counter, help, labels, name)


def seconds(help: str, *, name: str = "", **labels: Iterable[str]) -> Declaration[Histogram]:
    """A histogram of times in seconds."""
    return Declaration(Histogram, help, labels, name, buckets=SECONDS)


class JobDistribution(Collector):
    """A histogram with one value per running job. Unlike a histogram of events it goes up and down,
    so query it without rate(): histogram_quantile(0.5, sar_agent_job_links_bucket)."""

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:
        self._new = partial(Histogram, name, help, ("routes",), registry=None, buckets=bounds)
        self._values: dict[str, list[float]] = {}

    def set(self, routes: str, values: Iterable[float] | None) -> None:
        """Sets the values of the jobs under `routes`; None removes the series."""
        if values is None:
            self._values.pop(routes, None)
        else:
            self._values[routes] = list(values)

    def describe(self) -> Iterable[Metric]:
        """Called by prometheus_client when the collector is registered."""
        return self._new().describe()

    def collect(self) -> Iterable[Metric]:
        """Called by prometheus_client in the thread of a scrape: a histogram of what is set now."""
        histogram = self._new()
        for routes, values in sorted(self._values.copy().items()):
            series = histogram.labels(routes)
            for value in values:
                series.observe(value)
        return histogram.collect()
