"""The one way from a plan to tables in force: for passes, routing keys and rollbacks.

What is in force is read, the way from there is examined, and the load names the digest of what was
read: where that is something else when OpenSM gets to the load (a fallback engine has rewritten the
fabric meanwhile), the plugin refuses, and all is read and decided again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from sar_agent.check.transition import Transition, Way, examine
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.install.changes import TableChanges, table_changes
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.recent import RecentTables
from sar_agent.opensm.plugin_client import PluginClient, PluginRefused
from sar_agent.opensm.plugin_install import (
    LATER_IN_FORCE,
    InForce,
    NotYet,
    Timed,
    at_work,
    put_in_force,
    read_in_force,
)
from sar_agent.routing.routes import Routes

log = logging.getLogger(__name__)
_T = TypeVar("_T")
NO_LIMIT = (
    "packets of tables before would have to be gone first, and OpenSM sets no limit to how long "
    "they wait (head_of_queue_lifetime)"
)


class NotSafe(SarError):
    """The plan may not come into force from here; what is in force stays."""

    def __init__(self, transition: Transition, sentence: str = "") -> None:
        self.transition = transition
        super().__init__(sentence or f"{transition.words}; the routes in force stay")


class NotKnown(NotSafe, NotYet):
    """Not before it is known what switches have."""


@dataclass(frozen=True)
class CommitResult:
    """What is in force now."""

    plan: Plan
    """The plan, or as much of it as could be reached safely, with the generation in force."""
    in_force: InForce
    """As read back."""
    changed: TableChanges
    """Between what was read right before, which the plugin found as it was, and what was read
    back."""
    transition: Transition | None

    @property
    def found(self) -> RoutesFile:
        """As the plugin tells it."""
        return self.in_force.file


def transition_to(
    plan: Plan,
    before: Routes | None,
    timed: Timed = nullcontext,
    *,
    also: tuple[Routes, ...] = (),
    of: InForce | None = None,
    levels: AssignedLevels | None = None,
) -> Plan:
    """The plan with the verdict on its transition from `before`; `of` says what switches may have
    instead of that, `also` by which tables packets may have been sent, `levels` which service
    levels jobs were told."""
    if before is None:
        return plan
    told = levels.told(plan.fabric, plan.routes) if levels else None
    with timed("transition"):
        verdict = examine(
            plan.fabric,
            before,
            plan.routes,
            plan.proved,
            also=also,
            had=of.had if of else None,
            levels=told,
        )
    return replace(plan, transition=verdict)


class Transit:
    """To `path` (routes.sar) and into force; `sleep` waits for seconds, `levels` keeps what jobs
    were told, `tries` is how often what is in force may be another meanwhile."""

    def __init__(
        self,
        bridge: PluginClient,
        path: Path,
        timed: Timed = nullcontext,
        *,
        levels: AssignedLevels | None = None,
        tries: int = 3,
        recent: RecentTables | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.bridge, self.path, self.timed = bridge, path, timed
        self.levels, self.tries, self.sleep = levels, tries, sleep
        self.recent = recent or RecentTables()

    def read(self, fabric: Fabric) -> InForce:
        """What is in force, on the indices of `fabric`. Raises `NotYet` as `read_in_force`, and
        `Unavailable` where it cannot be told."""
        try:
            found = read_in_force(self.bridge, fabric)
        except NotYet:
            raise
        except SarError as error:
            raise Unavailable(
                f"the routes in force could not be read back ({error}), so no way from them can be "
                "proved safe; they stay"
            ) from error
        self.recent.saw(fabric, found)
        return found

    def commit(self, plan: Plan, go: Callable[[Plan, InForce], _T]) -> _T:
        """What `go` returns, called with the examined plan and what it was examined from; again
        where the plugin finds something else in force.

        Raises `NotKnown` where switches have not confirmed and no way is safe whatever they have,
        `NotYet` where OpenSM is at work, else what `go` does.
        """
        for left in range(self.tries - 1, -1, -1):
            before = self.read(plan.fabric)
            known = max(before.generation, before.status.generation_loaded)
            plan = replace(plan, generation=max(plan.generation, known + 1))
            plan = self.examined(plan, before)
            try:
                return go(plan, before)
            except PluginRefused as error:
                if error.code != "changed" or not left:
                    raise
                log.warning("%s; reading what is in force again", error)
        raise AssertionError("unreachable: tries is at least 1")

    def examined(self, plan: Plan, before: InForce) -> Plan:
        """The plan with the verdict on the way from `before`, and from tables before that, by which
        packets may still be on their way. Raises as `commit`."""
        if not before.confirmed and before.routes.digest == plan.routes.digest:
            raise NotYet(f"these routes were sent; {at_work(before.status)}")
        self._pause(self.recent.must_wait())
        also = self.recent.also(plan.fabric)
        plan = transition_to(
            plan, before.routes, self.timed, also=also, of=before, levels=self.levels
        )
        if plan.transition and plan.transition.way is Way.UNKNOWN:
            raise NotKnown(plan.transition)
        return plan

    def bring(
        self,
        plan: Plan,
        before: InForce,
        between: Callable[[Plan], None] = lambda stage: None,
        *,
        whole: bool = False,
    ) -> CommitResult:
        """Installs an `examined` plan through its stages, each with a generation of its own,
        checked, read back, and then told to `between`; `whole`: in one step, where nobody is there
        whom a mixture of old and new tables could hurt.

        Raises `NotSafe` where there is no safe way, else as `put_in_force`: then the last stage
        that arrived is in force.
        """
        transition, now, step = plan.transition, before, plan
        assert transition
        if transition.way is Way.UNKNOWN or (transition.way is Way.UNSAFE and not whole):
            raise NotSafe(transition)
        if not (transition.proved or whole):
            log.warning("generation %d: the transition is %s", plan.generation, transition.words)
        stages = (plan.routes,) if whole else transition.stages
        drains = (*transition.drains, *(False,) * len(stages))[: len(stages)]
        if transition.proved and any(drains) and before.status.head_of_queue_seconds < 0:
            raise NotSafe(transition, f"{transition.words}; {NO_LIMIT}; the routes in force stay")
        steps = [plan if routes is plan.routes else self._stage(plan, routes) for routes in stages]
        for number, (stage, drain) in enumerate(zip(steps, drains, strict=True)):
            if drain and transition.proved:
                self._pause(self.recent.left())
            step = replace(stage, generation=plan.generation + number)
            now = self._put(step, now)
            between(step)
        if self.levels:
            self.levels.only(plan.fabric, step.routes)
        changed = table_changes(plan.fabric, before.routes, now.routes)
        return CommitResult(step, now, changed, transition)

    def _put(self, step: Plan, before: InForce) -> InForce:
        levels = self.levels
        if levels:  # on the disk before the first host can be told them
            levels.tells(step.fabric, before.routes, step.routes, ours=before.generation > 0)
            step = replace(step, levels=levels.told_at_all)
        try:
            now = put_in_force(self.bridge, step, self.path, before.digest, self.timed)
        except PluginRefused as error:
            if levels and error.code not in LATER_IN_FORCE:
                levels.take_back()
            raise
        self.recent.saw(step.fabric, now)
        return now

    def _stage(self, plan: Plan, routes: Routes) -> Plan:
        made = make_plan(plan.generation, plan.fabric, plan.mix, routes, self.timed, before=plan)
        return replace(made, transition=plan.transition)

    def _pause(self, seconds: float) -> None:
        if 0 < seconds < math.inf:
            log.info("waiting %.1f s until packets of the tables before are gone", seconds)
            with self.timed("drain"):
                self.sleep(seconds)
