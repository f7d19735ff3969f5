"""Routes that came into force are put on record: after passes, keys and rollbacks.

The order is always the same. First the file of the generation is kept, then the
state names it, then the history tells of it, then the metrics show it; so no record claims more
than the ones before it can back. The routes are in force by then, so a full disk is a problem that
is logged and no reason to fail. A person's rollback is different: its hold must outlive the process
that asked for it. For it, room for the state is made before anything is installed, and a full disk
refuses the rollback while nothing has changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sar_agent.agent.decide import Decision
from sar_agent.agent.history import DecisionLog
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.outcome import Installed, Result
from sar_agent.agent.publish import Publisher
from sar_agent.agent.state import State
from sar_agent.install.transit import CommitResult
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


class Committer:
    """Puts on record what came into force."""

    def __init__(
        self, installed: InstalledRoutes, decisions: DecisionLog, publisher: Publisher
    ) -> None:
        self.installed, self.decisions, self.publisher = installed, decisions, publisher

    @contextmanager
    def room_for(self, state: State) -> Iterator[None]:
        """Around an install whose state must outlive this process. Raises `InputError`, before
        anything is installed, where the disk does not take a state like this."""
        self.installed.store.reserve(state)
        try:
            yield
        finally:
            self.installed.store.release()

    def record(
        self,
        result: CommitResult,
        state: State,
        entry: HistoryEntry | None,
        *,
        how: str,
        why: str = "",
        phases: dict[str, Any] | None = None,
        replaces: int | None = None,
    ) -> Installed:
        """`state` is what the state is to say, but for what the install decides (generation,
        identity, time). `entry` is for the history, None for none. `phases` describes a five-phase
        update. `replaces`: a kept generation that gives way to this one."""
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
                how=how,
                phases=phases,
            )
            self.publisher.rerouted(plan, result.changed, result.sl2vl_tables)
        self.publisher.status(result.in_force.status)
        self.publisher.wanted(plan.generation)
        return Installed(result, achieved, how, why)
