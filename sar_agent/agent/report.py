"""How a pass ended, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sar_agent.agent.decide import Reason


class Result(StrEnum):
    """How a pass ended; of those with a reroute the values are labels of a metric."""

    NOTHING = "nothing"
    HELD = "held"
    LATER = "later"
    WAITING = "waiting"
    PLANNED = "planned"
    INSTALLED = "installed"
    FAILED = "failed"


@dataclass(frozen=True)
class Report:
    """A pass in words."""

    result: Result
    sentence: str
    reason: Reason | None = None

    @property
    def ok(self) -> bool:
        """Whether all is as it should be, and `once` ends with exit code 0."""
        return self.result not in (Result.FAILED, Result.WAITING)
