"""What links really carried between two dumps of counters, beside the load of today's routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sar_agent.counters import Comparison, CounterWindow, align, compare
from sar_agent.counters.readings import PortReadings
from sar_agent.counters.sources import window_of
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_lab.assess.rate import RatedRoutes


@dataclass(frozen=True, eq=False)
class CountedLinks:
    """A window, and how it compares with the routes of `before`."""

    window: CounterWindow
    comparison: Comparison

    def json(self) -> dict[str, Any]:
        """For `assess.json`."""
        return self.comparison.json()


def read_window_of(sources: Sequence[str], seconds: float | None) -> PortReadings:
    """As `window_of`; raises `InputError` also where the sources are no window."""
    if len(sources) <= 2 and (readings := window_of(sources, seconds)):
        return readings
    raise InputError(
        f"--counters names {len(sources)} source" + ("s" if len(sources) != 1 else ""),
        remedy="give it twice: a dump from the begin of a window and one from its end; or "
        "once, an ibdiagnet2.db_csv with a section PM_DELTA, or a Prometheus server",
    )


def counted_links(
    fabric: Fabric, mix: JobMix, before: RatedRoutes, readings: PortReadings
) -> CountedLinks:
    """Raises `WindowLeftOut`, with one sentence."""
    window = align(fabric, readings)
    traffic = traffic_of(fabric, mix, before.routes)
    return CountedLinks(window, compare(fabric, window, before.measures.channel_load, traffic))
