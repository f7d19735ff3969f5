"""What was decided, when and why, and what came of it: one row a reroute, in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sar_agent.errors import SarError
from sar_agent.quality import Measures
from sar_agent.util.owned_files import open_owned

KEPT = 100_000
"""Rows; the oldest go first. At a reroute every half minute that is more than a month."""

_SHOWN = (
    "dark_fiber_ratio",
    "effective_efi_max",
    "effective_efi_mean",
    "lower_bound_efi_max",
    "load_max",
    "throughput_mean",
    "throughput_min",
)


@dataclass(frozen=True)
class Row:
    """One decision."""

    at: float
    """Unix seconds."""
    who: str
    """`agent`, or the person who asked."""
    reason: str
    why: str
    result: str
    """`installed`, `planned`, `failed`."""
    message: str
    """What went wrong; empty otherwise."""
    engine: str
    generation: int
    """0 where none was installed."""
    jobs: int
    """Multi-switch jobs."""
    seconds: float
    """From the decision to the end."""
    entries_changed: int | None
    blocks_changed: int | None = None
    """Blocks of 64 entries: what OpenSM sent."""
    transition: str = ""
    """How the new routes came into force, with the proof, or why they did not, in words."""
    before: dict[str, Any] | None = None
    """Metrics of the routes in force before."""
    predicted: dict[str, Any] | None = None
    """Of the plan."""
    achieved: dict[str, Any] | None = None
    """Of what was read back."""
    how: str = ""
    """`direct`, `staged`, `five-phase`; empty where nothing was installed."""
    phases: dict[str, Any] | None = None
    """Of a five-phase update: its number, subscribers, those that were late, seconds by phase."""


_COLUMNS = [one.name for one in fields(Row)]
_JSON = ("before", "predicted", "achieved", "phases")


def summary(measures: Measures | None) -> dict[str, Any] | None:
    """The metrics worth a row."""
    return None if measures is None else {name: getattr(measures, name) for name in _SHOWN}


class History:
    """`history.sqlite` in a folder. Raises `SarError` where the disk does not take or give it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "history.sqlite"

    def add(self, row: Row) -> None:
        """One more."""
        values = [json.dumps(v) if k in _JSON else v for k, v in asdict(row).items()]
        marks = ", ".join("?" * len(values))
        try:
            os.close(open_owned(self.path))  # SQLite would go by the umask, and by who runs it
        except OSError as error:
            raise SarError(f"{self.path}: {error.strerror}") from error
        with self._open() as base:
            columns = ", ".join(_COLUMNS)
            _make_room(base)
            base.execute(f"INSERT INTO decisions ({columns}) VALUES ({marks})", values)
            base.execute(
                "DELETE FROM decisions WHERE id <= (SELECT max(id) FROM decisions) - ?", (KEPT,)
            )

    def last(self, count: int) -> list[Row]:
        """The newest `count`, newest first; none where nothing was ever decided."""
        if not self.path.exists():
            return []
        with self._open(write=False) as base:
            known = _known(base)  # a table of an older agent has fewer
            columns = [name for name in _COLUMNS if name in known]
            if not columns:
                return []
            found = base.execute(
                f"SELECT {', '.join(columns)} FROM decisions ORDER BY id DESC LIMIT ?", (count,)
            ).fetchall()
        none = dict.fromkeys(_COLUMNS)
        rows = [none | dict(zip(columns, one, strict=True)) for one in found]
        return [Row(**_read(row)) for row in rows]

    @contextmanager
    def _open(self, write: bool = True) -> Iterator[sqlite3.Connection]:
        where = f"{self.path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
        try:
            with closing(sqlite3.connect(where, timeout=5, uri=True)) as base, base:
                yield base
        except sqlite3.Error as error:
            raise SarError(f"{self.path}: {error}") from error


def _read(row: dict[str, Any]) -> dict[str, Any]:
    return (
        row
        | {name: json.loads(row[name] or "null") for name in _JSON}
        | {name: row[name] or "" for name in ("transition", "how")}  # NULL of an older agent
    )


def _make_room(base: sqlite3.Connection) -> None:
    """The table, with the columns that an older agent did not have."""
    base.execute(
        f"CREATE TABLE IF NOT EXISTS decisions (id INTEGER PRIMARY KEY, {', '.join(_COLUMNS)})"
    )
    known = _known(base)
    for name in _COLUMNS:
        if name not in known:
            base.execute(f"ALTER TABLE decisions ADD COLUMN {name}")


def _known(base: sqlite3.Connection) -> set[str]:
    return {name for _, name, *_ in base.execute("PRAGMA table_info(decisions)")}
