"""How a reroute ended, and how a pass ended, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sar_agent.agent.decide import Reason
from sar_agent.install.plan import Plan


class Result(StrEnum):
    """How a pass ended; of passes with a reroute the values are labels of a metric."""

    NOTHING = "nothing"
    HELD = "held"
    LATER = "later"
    WAITING = "waiting"
    PLANNED = "planned"
    INSTALLED = "installed"
    FOLLOWED = "followed"
    """The subnet manager has changed tables by itself, and the agent goes on from them."""
    FAILED = "failed"


@dataclass(frozen=True)
class Report:
    """The end of a pass, in words."""

    result: Result
    sentence: str
    reason: Reason | None = None

    @property
    def ok(self) -> bool:
        """Whether all is as it should be, and `once` ends with exit code 0."""
        return self.result not in (Result.FAILED, Result.WAITING)


@dataclass(frozen=True)
class Outcome:
    """How a reroute ended: `PLANNED`, `LATER` or `INSTALLED`, and in words."""

    result: Result
    plan: Plan
    """The plan; of one that was installed, as much as could be reached safely."""
    words: str
