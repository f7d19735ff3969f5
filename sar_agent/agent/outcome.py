"""How a reroute ended (`Planned`, `Waiting` or `Installed`), and how a pass ended, in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sar_agent.agent.decide import Reason
from sar_agent.install.plan import Plan
from sar_agent.install.transit import CommitResult
from sar_agent.quality import Measures


@dataclass(frozen=True)
class Planned:
    """A plan that was not to be installed: the agent observes, or nothing can be installed."""

    plan: Plan


@dataclass(frozen=True)
class Waiting:
    """A plan that may come into force later; `why` is a sentence."""

    plan: Plan
    why: str


@dataclass(frozen=True)
class Installed:
    """A plan that is in force, was read back, and is on record."""

    result: CommitResult
    achieved: Measures | None
    """Measures of the tables that were read back; None where they were not taken."""
    how: str
    """`direct`, `staged` or `five-phase`."""
    why: str
    """Why in this way, in a sentence."""

    @property
    def plan(self) -> Plan:
        """The plan, or as much of it as could be reached safely."""
        return self.result.plan


Outcome = Planned | Waiting | Installed


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


def words_of(outcome: Outcome) -> str:
    """The outcome as a part of a sentence."""
    match outcome:
        case Planned():
            return "planned, not installed"
        case Waiting(_, why):
            return why
        case Installed(result, _, how, why):
            way = f" ({how}: {why})" if how != "direct" else ""
            return (
                f"generation {result.plan.generation} is in force, {result.changed.entries} "
                f"entries in {result.changed.blocks} blocks changed{way}"
            )
