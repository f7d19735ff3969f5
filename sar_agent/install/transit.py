"""The one way from a plan to tables in force: for passes, routing keys and rollbacks.

Three steps: the tables in force are read (`before`), the transition from them to the plan is
examined, and the plan is brought into force. The install names the digest of what was read. Where
other tables are in force when the subnet manager gets to it (a fallback engine has rewritten the
fabric meanwhile), it refuses, and everything is read and decided again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sar_agent.check.transition import Transition, Way, examine
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.install.changes import TableChanges, table_changes
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.recent import RecentTables
from sar_agent.install.subnet_manager import InForce, NotYet, SmRefused, SmStatus, SubnetManager
from sar_agent.routing.routes import Routes
from sar_agent.util.stages import stage

log = logging.getLogger(__name__)
PLAN_ATTEMPTS = 3
"""Plans in one pass, if the tables or the fabric change while one is being loaded."""
NO_LIMIT = (
    "packets sent by earlier tables would have to be gone first, and OpenSM sets no limit to how "
    "long they wait (head_of_queue_lifetime)"
)


class NotSafe(SarError):
    """The plan must not replace the tables that are in force now; they stay."""

    def __init__(self, transition: Transition, sentence: str = "") -> None:
        self.transition = transition
        super().__init__(sentence or f"{transition.words}; the routes in force stay")


class NotKnown(NotSafe, NotYet):
    """No transition can be proved before it is known what switches have."""


@dataclass(frozen=True)
class CommitResult:
    """A plan that came into force."""

    plan: Plan
    """The plan, or as much of it as could be reached safely, with the generation in force."""
    in_force: InForce
    """The tables as read back."""
    replaced: Routes
    """Those that were read right before, on the same indices."""
    changed: TableChanges
    """Between `replaced`, which the manager found unchanged, and `in_force`."""
    transition: Transition | None
    sl2vl_tables: int | None = None
    """SL2VL tables that OpenSM sent to switches meanwhile; None where nobody counts them."""


def transition_to(
    plan: Plan,
    before: Routes | None,
    *,
    also: tuple[Routes, ...] = (),
    of: InForce | None = None,
    levels: AssignedLevels | None = None,
) -> Plan:
    """The plan with the verdict on its transition from `before`; `of` says what switches may have
    instead of that, `also` by which tables packets may have been sent, `levels` which service
    levels jobs were assigned."""
    if before is None:
        return plan
    assigned = levels.assigned(plan.fabric, plan.routes) if levels else None
    with stage("transition"):
        verdict = examine(
            plan.fabric,
            before,
            plan.routes,
            also=also,
            had=of.had if of else None,
            levels=assigned,
            numbers=plan.numbers,
        )
    numbers = plan.numbers if verdict.numbers is None else verdict.numbers  # in which both rise
    return replace(plan, numbers=numbers, transition=verdict)


def _sl2vl_tables(before: SmStatus, now: SmStatus) -> int | None:
    """Those sent between two reports of the same process."""
    first, last = before.sl2vl_tables_sent, now.sl2vl_tables_sent
    if first is None or last is None or before.process != now.process:
        return None
    return last - first


class Transit:
    """Into force through `manager`. `levels` keeps what jobs were assigned, `sleep` waits for
    seconds."""

    def __init__(
        self,
        manager: SubnetManager,
        levels: AssignedLevels,
        recent: RecentTables | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.manager, self.levels, self.sleep = manager, levels, sleep
        self.recent = recent or RecentTables()

    def read(self, fabric: Fabric) -> InForce:
        """The tables in force, on the indices of `fabric`. Raises `NotYet` where the manager is at
        work, and `Unavailable` where they cannot be read."""
        try:
            found = self.manager.routes_in_force(fabric)
        except NotYet:
            raise
        except SarError as error:
            raise Unavailable(
                f"the routes in force could not be read back ({error}), so no transition from them "
                "can be proved safe; they stay"
            ) from error
        self.recent.saw(fabric, found)
        return found

    def install(self, plan: Plan, known: InForce | None = None) -> CommitResult:
        """Examine and bring into force; again where the manager finds other tables in force
        meanwhile. Raises as `before`, `examine` and `bring`."""
        left = PLAN_ATTEMPTS
        while True:
            before, known = self.before(plan.fabric, known), None
            plan = self.examine(plan, before)
            try:
                return self.bring(plan, before)
            except SmRefused as error:
                left -= 1
                if not error.changed or not left:
                    raise
                log.warning("%s; reading what is in force again", error)

    def before(self, fabric: Fabric, known: InForce | None = None) -> InForce:
        """What is in force on `fabric`: `known`, which was read a moment ago, if it is confirmed
        and no routing has happened since; else what is read now. Packets may have been sent by
        other tables meanwhile, even if the tables are the same again. Raises as `read`."""
        version = known.status.tables_version if known and known.confirmed else None
        if known is None or version is None or self.manager.status().tables_version != version:
            return self.read(fabric)
        self.recent.saw(fabric, known)
        return known

    def examine(self, plan: Plan, before: InForce) -> Plan:
        """The plan, numbered above all that the manager has heard of, with the verdict on the
        transition from `before`, and from earlier tables by which packets may still be on their
        way. Raises `NotKnown` where switches have not confirmed and no transition is safe whatever
        they have, and `NotYet` where these routes were sent already."""
        number = max(plan.generation, before.status.highest_generation + 1)
        plan = replace(plan, generation=number)
        if not before.confirmed and before.routes.digest == plan.routes.digest:
            raise NotYet(f"these routes were sent; {before.status.unsettled}")
        self._pause(self.recent.must_wait())
        also = self.recent.also(plan.fabric)
        plan = transition_to(plan, before.routes, also=also, of=before, levels=self.levels)
        if plan.transition and plan.transition.way is Way.UNKNOWN:
            raise NotKnown(plan.transition)
        return plan

    def bring(self, plan: Plan, before: InForce, *, whole: bool = False) -> CommitResult:
        """Install an examined plan through its stages, each with a generation of its own, checked
        and read back. `whole`: in one step, because there is no traffic that a mixture of old and
        new tables could harm.

        Raises `NotSafe` where no transition is safe, else as `SubnetManager.install`: then the last
        stage that arrived is in force.
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
        for number, (planned, drain) in enumerate(zip(steps, drains, strict=True)):
            if drain and transition.proved:
                self._pause(self.recent.left())
            step = replace(planned, generation=plan.generation + number)
            step, now = self._install_stage(step, now)
        self.levels.end_others(plan.fabric, step.routes)
        changed = table_changes(plan.fabric, before.routes, now.routes)
        sent = _sl2vl_tables(before.status, now.status)
        return CommitResult(step, now, before.routes, changed, transition, sent)

    def _install_stage(self, step: Plan, before: InForce) -> tuple[Plan, InForce]:
        """Install a stage; returns it with the levels that it keeps, and what was read back."""
        # On the disk before the first host can be assigned them.
        self.levels.begin(step.fabric, before.routes, step.routes, ours=before.status.ours)
        step = replace(step, levels=self.levels.all_assigned)
        try:
            now = self.manager.install(step, before.digest)
        except SmRefused as error:
            if not error.pending:
                self.levels.undo_begin()
            raise
        proved = now.routes.egress is step.routes.egress
        self.recent.saw(step.fabric, now, step.proved.hops if proved else None)
        return step, now

    def _stage(self, plan: Plan, routes: Routes) -> Plan:
        made = make_plan(plan.generation, plan.fabric, plan.mix, routes, before=plan)
        return replace(made, transition=plan.transition)

    def _pause(self, seconds: float) -> None:
        if 0 < seconds < math.inf:
            log.info("waiting %.1f s until packets sent by earlier tables are gone", seconds)
            with stage("drain"):
                self.sleep(seconds)
