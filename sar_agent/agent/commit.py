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
from typing import Any

from sar_agent.agent.current import Current
from sar_agent.agent.history import DecisionLog, HistoryEntry
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.outcome import Outcome, Result
from sar_agent.agent.publish import Publisher
from sar_agent.agent.state import State
from sar_agent.demand.endpoints import mix_of_host_sets
from sar_agent.install.plan import Plan
from sar_agent.install.transit import CommitResult
from sar_agent.routing.collectives.reasons import ring_entries_moved
from sar_agent.routing.routes import Routes
from sar_agent.util.plural import plural


def rings_moved(
    plan: Plan, before: State | None, replaced: Routes | None, new: Routes
) -> int | None:
    """`Row.ring_entries_moved`: `before` tells the jobs that `replaced` was made for, tables on the
    indices of the plan's fabric, in whose place are now `new`; None without either."""
    if before is None or replaced is None:
        return None
    jobs = mix_of_host_sets(plan.fabric, before.jobs)
    return ring_entries_moved(plan.fabric, jobs, plan.mix, replaced.egress[0], new.egress[0])


class Committer:
    """Puts on record what came into force."""

    def __init__(
        self, installed: InstalledRoutes, decisions: DecisionLog, publisher: Publisher
    ) -> None:
        self.installed, self.decisions, self.publisher = installed, decisions, publisher

    def record(
        self,
        current: Current,
        result: CommitResult,
        state: State,
        entry: HistoryEntry | None,
        *,
        how: str,
        why: str = "",
        phases: dict[str, Any] | None = None,
        replaces: int | None = None,
    ) -> tuple[Current, Outcome]:
        """Returns what is in force now. `state` is what the state is to say, but for what the
        install decides (generation, identity, time). `entry` is for the history, None for none.
        `phases` describes a five-phase update. `replaces`: a kept generation that gives way to this
        one."""
        plan, now = result.plan, time.time()
        moved = rings_moved(plan, current.state, result.replaced, result.in_force.routes)
        update = {
            "generation": plan.generation,
            "identity": result.in_force.identity,
            "fabric_digest": plan.fabric.digest.hex(),
            "installed_at": now,
        }
        current = self.installed.keep(current, result, state.model_copy(update=update), replaces)
        current = self.publisher.in_force(current, plan.fabric, plan.mix)
        if entry:
            sent = result.sl2vl_tables
            self.decisions.add(
                entry,
                Result.INSTALLED,
                plan,
                result.changed,
                current.measures,
                sl2vl_tables=sent,
                ring_entries_moved=moved,
                how=how,
                phases=phases,
            )
            self.publisher.rerouted(result.changed, sent)
        self.publisher.status(result.in_force.status)
        self.publisher.metrics.generation_installed.set(plan.generation)
        way = f" ({how}: {why})" if how != "direct" else ""
        words = (
            f"generation {plan.generation} is in force, "
            f"{plural(result.changed.entries, 'entry', 'entries')} in "
            f"{result.changed.blocks} blocks changed{way}"
        )
        return current, Outcome(Result.INSTALLED, plan, words)
