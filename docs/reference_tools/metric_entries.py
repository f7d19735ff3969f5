"""Every metric of the agent: name, type, labels and meaning, and the alerts that read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sar_agent.telemetry.metrics import Metrics

_UNITS = {"seconds": "s", "bytes": "B", "ratio": "share", "hops": "hops"}


@dataclass(frozen=True)
class MetricEntry:
    """One family, by the name that queries use."""

    name: str
    type: str
    labels: tuple[str, ...]
    unit: str
    meaning: str
    alerts: tuple[str, ...]


def metric_entries(rules: str) -> Iterator[MetricEntry]:
    """All families, in the order of their declaration; `rules` is the text of the alert rules."""
    alerts = dict(alert_expressions(rules))
    metrics = Metrics("0", "observe", "sar-plus")
    labels = {m._name: tuple(m._labelnames) for m in metrics.metrics.values()}
    for family in metrics.registry.collect():
        name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        own = labels.get(family.name) or _labels_of(family.name)
        base = re.sub(r"_(total|info)$", "", name)
        unit = next((u for word, u in _UNITS.items() if re.search(rf"_{word}(_|$)", base)), "")
        reading = tuple(a for a, e in alerts.items() if re.search(rf"\b{name}\b", e))
        yield MetricEntry(name, family.type, own, unit, family.documentation, reading)


def alert_expressions(rules: str) -> Iterator[tuple[str, str]]:
    """(alert, its query) of each rule."""
    for part in rules.split("- alert: ")[1:]:
        query = re.search(r"^ +expr: (.+)$", part, re.MULTILINE)
        assert query is not None
        yield part.split("\n")[0].strip(), query[1]


def _labels_of(family: str) -> tuple[str, ...]:
    """Labels of the families that are collected at each scrape."""
    if family == "sar_agent_build":
        return "version", "mode", "engine"
    of_scrape = family.startswith("sar_agent_job_") and "_lost_" not in family
    return ("routes",) if of_scrape else ()
