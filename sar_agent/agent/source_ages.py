"""How old what the agent knows is, by source: jobs, fabric, tables, counters.

A file that is read every half minute may be of last month all the same, so what counts is when it
was written, and not when it was read. The tables have a rule of their own (`opensm/dump_age.py`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from sar_agent.errors import InputError
from sar_agent.opensm.dump_age import of_date
from sar_agent.util.text_files import read_text, write_text

Source = Literal["jobs", "fabric", "tables", "counters"]
OLD_SECONDS: dict[Source, float] = {"jobs": 900.0, "fabric": 86400.0}
"""From this age on, a file is stale: jobs start within minutes, cables fail within days."""
AHEAD_SECONDS = 60.0
"""What was written or read so much later than now comes from a machine with another clock."""
_MEANS = {
    "jobs": "jobs that have started since are not seen",
    "fabric": "cables that have failed since are not seen",
}


@dataclass(frozen=True)
class SourceAge:
    """One source."""

    at: float = 0.0
    """When it was like that, Unix seconds; 0.0 where it was never read."""
    stale: str = ""
    """Why it is too old to be believed, in a sentence; empty where it is not."""


FILE = "sources.json"
"""In the agent's run folder."""
_AGES = TypeAdapter(dict[str, SourceAge])


def write_ages(folder: Path, ages: dict[str, SourceAge]) -> None:
    """By source, for `read_ages`. Raises `SarError` where the disk does not take it."""
    write_text(folder / FILE, _AGES.dump_json(ages).decode() + "\n")


def read_ages(folder: Path) -> dict[str, SourceAge]:
    """Those of the agent's last pass; empty where there is no such file, or another one."""
    with suppress(InputError, ValueError):
        return _AGES.validate_json(read_text(folder / FILE))
    return {}


def age_of_file(source: Source, file: str, written_at: float) -> SourceAge:
    """Of what was read from a file that was written then."""
    age = time.time() - written_at
    if age < -AHEAD_SECONDS:
        why = f"{file} was written {-age:.0f} s from now: the clocks of two machines differ, so "
        return SourceAge(written_at, f"{why}the age of the {source} is not known")
    if age <= OLD_SECONDS[source]:
        return SourceAge(written_at)
    why = f"{file}: the {source} {'are' if source == 'jobs' else 'is'} {of_date(written_at)}, and "
    return SourceAge(written_at, f"{why}{_MEANS[source]}; write it again, by cron or a timer")
