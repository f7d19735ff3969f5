"""The one way from a plan to routes in force that are on record: for passes, keys and rollbacks.

After an install the order is always the same. First the file of the generation is kept, then the
state names it, then the history tells of it, then the metrics show it; so no record claims more
than the ones before it can back. The routes are in force by then, so a full disk is a problem that
is logged and no reason to fail. A person's rollback is different: its hold must outlive the process
that asked for it. For it, room for the state is made before anything is installed, and a full disk
refuses the rollback while nothing has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sar_agent.agent.decide import Decision
from sar_agent.agent.history import DecisionLog
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.outcome import Installed, Result, Waiting
from sar_agent.agent.publish import Publisher
from sar_agent.agent.state import State
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.install.transit import CommitResult, Transit
from sar_agent.quality import Measures


@dataclass(frozen=True)
class HistoryEntry:
    """What the history is to tell of an install."""

    decision: Decision
    engine: str
    before: Measures | None
    """Measures of the routes that were in force before."""
    began: float = field(default_factory=time.monotonic)
    """When the decision was made, by `time.monotonic`."""


@dataclass(frozen=True)
class Arrival:
    """A plan that came into force, not on record yet. `phases` describes a five-phase update."""

    result: CommitResult
    how: str
    why: str = ""
    phases: dict[str, Any] | None = None


Go = Callable[[Plan, InForce], Arrival | Waiting]
"""Brings an examined plan into force, from the tables that it was examined from."""


class Committer:
    """Puts plans in force and on record."""

    def __init__(
        self,
        transit: Transit,
        installed: InstalledRoutes,
        decisions: DecisionLog,
        publisher: Publisher,
    ) -> None:
        self.transit, self.installed = transit, installed
        self.decisions, self.publisher = decisions, publisher

    def commit(
        self,
        plan: Plan,
        go: Go,
        state: State,
        entry: HistoryEntry | None,
        *,
        known: InForce | None = None,
        replaces: int | None = None,
        must_save: bool = False,
    ) -> Installed | Waiting:
        """Examine `plan`, bring it into force by `go`, and record it.

        `state` is what the state is to say, but for what the install decides (generation,
        identity, time). `entry` is for the history, None for none. `known` was read a moment ago.
        `replaces`: a kept generation that gives way to this one. `must_save`: raise `InputError`,
        before anything is installed, where the state cannot be saved.

        Raises `SarError`; then the plan is not in force, and nothing is on record."""
        store = self.installed.store
        if must_save:
            store.reserve(state)
        try:
            arrival = self.transit.commit(plan, go, known)
            if isinstance(arrival, Waiting):
                return arrival
            return self._record(arrival, state, entry, replaces)
        finally:
            store.release()

    def _record(
        self, arrival: Arrival, state: State, entry: HistoryEntry | None, replaces: int | None
    ) -> Installed:
        result = arrival.result
        plan, now = result.plan, time.time()
        update = {
            "generation": plan.generation,
            "identity": result.in_force.identity,
            "fabric_digest": plan.fabric.digest.hex(),
            "installed_at": now,
        }
        self.installed.keep(result, state.model_copy(update=update), replaces)
        achieved = None
        if entry:
            achieved = self.publisher.measure_in_force(result.in_force, plan.fabric, plan.mix, plan)
            self.decisions.add(
                entry.decision,
                Result.INSTALLED,
                engine=entry.engine,
                jobs=len(plan.mix.jobs),
                seconds=time.monotonic() - entry.began,
                before=entry.before,
                plan=plan,
                changed=result.changed,
                sl2vl_tables=result.sl2vl_tables,
                achieved=achieved,
                how=arrival.how,
                phases=arrival.phases,
            )
            self.publisher.rerouted(plan, result.changed, result.sl2vl_tables)
        self.publisher.status(result.in_force.status)
        self.publisher.wanted(plan.generation)
        return Installed(result, achieved, arrival.how, arrival.why)
