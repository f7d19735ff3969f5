"""Metrics as declarations in the body of a class.

    class QueueMetrics(MetricGroup):
        waiting = gauge("jobs_waiting", "Jobs that wait.")
        refused = counter("refused", "Messages that were refused, by reason.", reason=Reason)

Each instance registers its own metrics in its `registry`. A keyword argument is a label with the
values whose series exist from the start, since rate() and alerts need a series before its first
event; a label without values, `reason=()`, has series only as they occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Generic, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

PREFIX = "sar_agent_"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper bounds of the buckets of histograms of times."""
M = TypeVar("M", bound=MetricWrapperBase)


class Declaration(Generic[M]):
    """One metric of a `MetricGroup`: its attribute is the metric itself."""

    def __init__(
        self, create: Callable[[CollectorRegistry], M], labels: dict[str, Iterable[str]]
    ) -> None:
        self._create = create
        self._initial = [tuple(map(str, values)) for values in product(*labels.values())]
        self._attribute = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, group: MetricGroup, owner: type) -> M:
        return cast(M, group.metrics[self._attribute])

    def register(self, group: MetricGroup) -> None:
        """Creates the metric, with the series that exist from the start."""
        metric = group.metrics[self._attribute] = self._create(group.registry)
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


def gauge(name: str, help: str, **labels: Iterable[str]) -> Declaration[Gauge]:
    """A value that goes up and down."""
    return _declare(Gauge, name, help, labels)


def counter(name: str, help: str, **labels: Iterable[str]) -> Declaration[Counter]:
    """A count of events; Prometheus sees it as NAME_total."""
    return _declare(Counter, name, help, labels)


def seconds(name: str, help: str, **labels: Iterable[str]) -> Declaration[Histogram]:
    """A histogram of times in seconds."""
    return _declare(Histogram, name, help, labels, buckets=SECONDS)


def _declare(
    kind: type[M], name: str, help: str, labels: dict[str, Iterable[str]], **options: Any
) -> Declaration[M]:
    def create(registry: CollectorRegistry) -> M:
        return kind(PREFIX + name, help, tuple(labels), registry=registry, **options)

    return Declaration(create, labels)
