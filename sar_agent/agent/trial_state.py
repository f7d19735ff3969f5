"""The trial on disk, so that a restart of the agent goes on with it: `trial.json`."""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer

from sar_agent.config.counters import TrialMeasure
from sar_agent.counters.ratio_interval import RatioInterval, ratio_interval
from sar_agent.errors import InputError
from sar_agent.jobs.filter import HostSets
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_bytes

log = logging.getLogger(__name__)

Phase = Literal["running", "going_back", "stays", "went_back", "undecided"]
MEASURES: dict[TrialMeasure, str] = {
    "load": "the fullest link's share of its speed, by the mean over links,",
    "waits": "PortXmitWait for each GB",
}


class SavedTrial(BaseModel):
    """A trial that runs, or the last one. Times are Unix seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    phase: Phase = "running"
    generation: int
    """Of the routes that are tried."""
    earlier: int
    """The kept generation that they replace."""
    reason: str
    """Why the routes were changed."""
    tables: str
    """Digest of the tried tables of LID offset 0, hexadecimal."""
    fabric_digest: str
    jobs: HostSets
    ids: frozenset[str]
    """Of the same jobs."""
    levels: dict[str, int]
    """Levels of the jobs' weights before."""
    measure: TrialMeasure
    windows: int = Field(ge=4)
    """How many are needed after."""
    before: tuple[float, ...]
    after: tuple[float, ...] = ()
    other_jobs: int = 0
    """Windows that were left out because jobs came, went or had another route meanwhile."""
    unusable: int = 0
    """Windows in which too little was sent, or the measure is not known."""
    failures: int = 0
    """Of the way back."""
    began: float
    until: float
    """Without enough windows by then, the routes go back."""
    ended: float = 0.0
    why: str = ""
    """How it ended, in a sentence."""

    @field_serializer("ids")
    def _in_order(self, ids: frozenset[str]) -> list[str]:
        return sorted(ids)

    @field_serializer("jobs")
    def _sorted(self, jobs: HostSets) -> list[list[str]]:
        return sorted(map(sorted, jobs))

    @property
    def active(self) -> bool:
        """Whether its routes are still to be judged, or to be replaced."""
        return self.phase in ("running", "going_back")

    @property
    def interval(self) -> RatioInterval | None:
        """After by before, from the windows so far."""
        return ratio_interval(self.before, self.after)

    @property
    def left_out(self) -> str:
        """A part of a sentence; empty where no window was left out."""
        parts = []
        if self.other_jobs:
            parts.append(f"{self.other_jobs} because jobs or routes changed meanwhile")
        if self.unusable:
            parts.append(f"{self.unusable} because they do not show it")
        return f"; windows left out: {', '.join(parts)}" if parts else ""

    def numbers(self) -> str:
        """What was counted, as a part of a sentence."""
        found = self.interval
        if found is None:
            return f"{len(self.after)} of {self.windows} windows counted{self.left_out}"
        return (
            f"{MEASURES[self.measure]} is {found.ratio:.3g} times that before ({found.low:.3g} to "
            f"{found.high:.3g}, {found.confidence:.0%} interval of {len(self.before)} windows "
            f"before and {len(self.after)} after){self.left_out}"
        )

    def words(self) -> str:
        """For people."""
        if self.phase == "running":
            return f"generation {self.generation} is on trial: {self.numbers()}"
        return f"generation {self.generation}: {self.why}"

    def summary(self) -> dict[str, object]:
        """For the history."""
        found = self.interval
        return {
            "verdict": self.phase,
            "measure": self.measure,
            "ratio": found and _finite(found.ratio),
            "low": found and _finite(found.low),
            "high": found and _finite(found.high),
            "confidence": found and found.confidence,
            "before": list(self.before),
            "after": list(self.after),
            "other_jobs": self.other_jobs,
            "unusable": self.unusable,
            "why": self.why,
        }


def _finite(value: float) -> float | None:
    """JSON has no number for what is infinite: something after, nothing before."""
    return value if math.isfinite(value) else None


class TrialStore:
    """`trial.json` in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "trial.json"

    def load(self) -> SavedTrial | None:
        """The saved trial, or None. A file that cannot be read is logged and counts as no trial:
        the routes in force stay."""
        try:
            return SavedTrial.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is no trial of ours"
            log.warning("%s: cannot be used (%s); a trial in it is over", self.path, what)
            return None

    def save(self, trial: SavedTrial) -> None:
        """Replace the file in one step. Raises `InputError` where the disk does not take it."""
        write_bytes(self.path, (trial.model_dump_json(indent=1) + "\n").encode(), PRIVATE)

    def remove(self) -> None:
        """No trial was made."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def try_to_save(self, trial: SavedTrial) -> str:
        """Like `save`, but returns the problem, or an empty string."""
        try:
            self.save(trial)
        except InputError as error:
            return f"{error}; the trial is kept in memory only"
        return ""
