"""What links really carried between two dumps of counters, beside the load of today's routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sar_agent.counters import Comparison, CounterWindow, align, compare
from sar_agent.counters.counter_files import read_counter_file, read_growth
from sar_agent.counters.readings import PortReadings, difference
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


def read_dumps(files: Sequence[Path], seconds: float | None) -> PortReadings:
    """The window between two files of perfquery or ibdiagnet2, or of one `ibdiagnet2.db_csv`.
    `seconds`: its length; None takes it from the times at which the files were written. Raises
    `InputError` and `WindowLeftOut`."""
    if len(files) == 1 and (growth := read_growth(files[0], seconds)):
        return growth
    if len(files) != 2:
        raise InputError(
            f"--counters names {len(files)} file" + ("s" if len(files) != 1 else ""),
            remedy="give it twice: a dump from the begin of a window and one from its end; or "
            "once, an ibdiagnet2.db_csv with a section PM_DELTA",
        )
    before, after = (read_counter_file(path) for path in files)
    if seconds is not None:
        before = replace(before, at=before.at * 0.0)
        after = replace(after, at=after.at * 0.0 + seconds)
    return difference(before, after, float(after.at.max()))


def counted_links(
    fabric: Fabric, mix: JobMix, before: RatedRoutes, readings: PortReadings
) -> CountedLinks:
    """Raises `WindowLeftOut`, with one sentence."""
    window = align(fabric, readings)
    traffic = traffic_of(fabric, mix, before.routes)
    return CountedLinks(window, compare(fabric, window, before.measures.channel_load, traffic))
