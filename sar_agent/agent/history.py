"""What was decided, when and why, and what came of it: one row for each reroute, in SQLite; and one
for each cable that went bad or is well again.

A file that is damaged is moved aside by the next decision, or when the agent starts, and a new one
begins: the history explains, and nothing is decided from it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sar_agent.agent.decide import Reason
from sar_agent.agent.outcome import Result
from sar_agent.errors import SarError
from sar_agent.install.changes import TableChanges
from sar_agent.install.plan import Plan
from sar_agent.quality import Measures
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.sqlite_file import HISTORY, SqliteTable

MOST_ROWS = 100_000
"""Rows; the oldest are deleted first. With a reroute every half minute, more than a month."""

_SHOWN = (
    "dark_fiber_ratio", "effective_efi_max", "effective_efi_mean", "lower_bound_efi_max",
    "load_max", "phase_contention_max", "phase_contention_mean", "throughput_mean",
    "throughput_min",
)  # fmt: skip


DECISION, CABLE = "decision", "cable"
"""What a row is of."""


@dataclass(frozen=True)
class Row:
    """One decision, or one event of a cable."""

    at: float
    """Unix seconds."""
    who: str
    """`agent`, or the person who asked."""
    reason: str
    why: str
    result: str
    """`installed`, `planned`, `failed`."""
    message: str
    """What went wrong; empty where nothing did."""
    engine: str
    generation: int
    """Number of the installed plan; 0 where none was installed."""
    jobs: int
    """Multi-switch jobs."""
    seconds: float
    """From the decision to its end."""
    entries_changed: int | None
    blocks_changed: int | None = None
    """Blocks of 64 entries: what OpenSM sent."""
    transition: str = ""
    """How the new routes came into force, with the proof, or why they did not, in words."""
    before: dict[str, Any] | None = None
    """Measures of the routes that were in force before."""
    predicted: dict[str, Any] | None = None
    """Measures of the plan."""
    achieved: dict[str, Any] | None = None
    """Measures of the tables that were read back."""
    how: str = ""
    """`direct`, `staged`, `five-phase`; empty where nothing was installed."""
    phases: dict[str, Any] | None = None
    """The five-phase update, if there was one: number, subscribers, late ones, seconds by phase."""
    sl2vl_tables: int | None = None
    """SL2VL tables that OpenSM sent to switches for the install; None where nobody counts them."""
    ring_entries_moved: int | None = None
    """Entries among `entries_changed` over which rings of jobs sent that the tables before were
    made for and that still run; None where that is not known."""
    kind: str = DECISION
    """`decision` or `cable`; rows of older releases are decisions."""


def summary(measures: Measures | None) -> dict[str, Any] | None:
    """The measures that a row keeps. Phase contention, where not yet known, is computed here, once
    the routes are in force: 70 ms with 11,664 hosts in jobs, 32 phases of large ones."""
    return None if measures is None else {name: getattr(measures, name) for name in _SHOWN}


class History(SqliteTable[Row]):
    """`history.sqlite` in a folder. Raises `SarError` where the disk does not take or give it."""

    def __init__(self, folder: Path, name: str = HISTORY) -> None:
        super().__init__(folder / name, "decisions", Row, "(id INTEGER PRIMARY KEY, %s)")

    def add(self, *rows: Row) -> None:
        """Add rows, and delete the oldest past `MOST_ROWS`."""

        def insert(base: sqlite3.Connection) -> None:
            self.upsert(base, rows)
            base.execute(
                "DELETE FROM decisions WHERE id <= (SELECT max(id) FROM decisions) - ?",
                (MOST_ROWS,),
            )

        self.write(insert)

    def last(self, count: int, kind: str = "") -> list[Row]:
        """The newest `count` rows, newest first, of one kind or of all; empty where nothing was
        ever decided."""
        if kind:
            rest = "WHERE coalesce(kind, ?) = ? ORDER BY id DESC LIMIT ?"
            return self.select(rest, DECISION, kind, count)
        return self.select("ORDER BY id DESC LIMIT ?", count)

    def after(self, at: float, count: int) -> list[Row]:
        """The oldest `count` rows of decisions made after `at` (Unix seconds), oldest first."""
        return self.select("WHERE at > ? ORDER BY at, id LIMIT ?", at, count)


@dataclass(frozen=True)
class HistoryEntry:
    """What the history is to tell of a decision: its reason, and `why` in words."""

    reason: Reason
    why: str
    engine: str
    before: Measures | None
    """Measures of the routes that were in force before."""
    began: float = field(default_factory=time.monotonic)
    """When the decision was made, by `time.monotonic`."""


class DecisionLog:
    """Writes decisions of `who` to `history`; a full disk is logged, and no reason to fail."""

    def __init__(self, history: History, who: str, problems: ProblemLog) -> None:
        self.history, self.who, self.problems = history, who, problems

    def add(
        self,
        entry: HistoryEntry,
        result: Result,
        plan: Plan | None = None,
        changed: TableChanges | None = None,
        achieved: Measures | None = None,
        **others: Any,
    ) -> None:
        """Add a row; `changed` is None where nothing was installed, `others` are columns of
        `Row`."""
        columns: dict[str, Any] = {
            "at": time.time(),
            "who": self.who,
            "reason": entry.reason.value,
            "why": entry.why,
            "result": result.value,
            "message": "",
            "engine": entry.engine,
            "generation": plan.generation if plan and changed else 0,
            "jobs": len(plan.mix.whole_jobs) if plan else 0,
            "seconds": time.monotonic() - entry.began,
            "entries_changed": changed.entries if changed else None,
            "blocks_changed": changed.blocks if changed else None,
            "transition": plan.transition.words if plan and plan.transition else "",
            "before": summary(entry.before),
            "predicted": summary(plan.measures) if plan else None,
            "achieved": summary(achieved),
        }
        row = Row(**columns | others)
        self.write(lambda: self.history.add(row))

    def write(self, work: Callable[[], None]) -> bool:
        """Does `work`, which writes to the file of the history; whether that went well. What is
        wrong is said once, until it is over."""
        try:
            work()
        except SarError as error:
            self.problems.problem("history", f"{error}; the history has a gap")
            return False
        self.problems.problem("history", "", "the history can be written again")
        return True
