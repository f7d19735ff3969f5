"""What the subnet manager repaired by itself: read back, judged, and gone on from.

After a failure OpenSM's plugin changes entries of the plan in force along its channel numbers. What
is in force is then a generation and its amendments: tables that differ from the installed plan, but
that the plugin derived from it. The agent checks them as any routes. If they pass, they are what is
in force, later plans start from them, and after a while they become a generation of their own. If
they do not, they are replaced at once, like any tables that the agent did not make.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sar_agent.agent.decide import Decision, Reason
from sar_agent.agent.history import DecisionLog
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Result
from sar_agent.agent.planner import Planner
from sar_agent.agent.state import State
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_numbers
from sar_agent.install.amended import completed
from sar_agent.install.changes import table_changes
from sar_agent.install.dead_switches import lacks_switches
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.subnet_manager import InForce, NotYet, SmStatus

log = logging.getLogger(__name__)


class Amendments:
    """Follows what the manager changes in the plan in force. `quiet` is how many seconds amended
    tables stay before they become a generation of their own; `clock` returns seconds."""

    def __init__(
        self,
        installed: InstalledRoutes,
        planner: Planner,
        decisions: DecisionLog,
        quiet: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.installed, self.planner, self.decisions = installed, planner, decisions
        self.quiet, self.clock = quiet, clock
        self._since: tuple[str, float] | None = None
        """The identity of amended tables, and when they were first seen."""
        self._refused: object = None
        """The amended tables that did not pass the checks, which are logged once."""

    def follow(self, site: Observation, state: State | None) -> tuple[State | None, str]:
        """The state with what is in force now, and why to wait with any decision: the manager is
        not done with its repair. Empty where there is nothing to wait for."""
        status, found, began = site.status, site.in_force, time.monotonic()
        if status is None or state is None:
            return state, ""
        name = self.installed.manager.name
        amended = is_amended(status, state, site.fabric)
        if not amended:
            changed = is_of(status, state) and site.fabric.digest.hex() != state.fabric_digest
            if changed and status.state != "built":
                return state, f"{name} is not done with the changed fabric"
            if not changed or not self._still_serves(status.generation, site.fabric):
                return state, ""
        what = f"{name} has repaired generation {status.generation} itself"
        if not amended:
            what = f"generation {status.generation} serves the changed fabric as it is"
        if found is None or found.status.state != "built" or found.identity != status.identity:
            return state, f"{what}, and is not done with it"
        try:
            plan = self._judged(found, state, site.fabric)
        except SarError as error:
            tables = status.identity, site.fabric.digest
            if tables != self._refused:
                log.warning("%s, but these tables do not pass the checks: %s", what, error)
            self._refused = tables
            return state, ""
        state = self.installed.follow(plan, found, state)
        self.planner.adopt(plan)
        self.planner.keep_shelter(plan)
        difference = None
        with suppress(SarError):  # the generation is not kept
            kept = self.installed.as_installed(plan.generation, site.fabric)
            difference = table_changes(site.fabric, kept, found.routes)
        many = f"; {difference.entries} entries differ from the plan" if difference else ""
        log.info("%s; the tables pass the checks, going on from them%s", what, many)
        self.decisions.add(
            Decision(Reason.AMENDED, f"{what}{many}"),
            Result.FOLLOWED,
            engine=found.routes.engine,
            jobs=len(plan.mix.jobs),
            seconds=time.monotonic() - began,
            before=None,
            plan=plan,
            changed=difference,
            achieved=plan.measures,
        )
        return state, ""

    def resume(self, site: Observation, state: State | None) -> None:
        """After a restart, plans start from the routes in force, if they are the last installed
        ones and the fabric is the same; otherwise from nothing. Raises `NotYet` while the manager
        is at work: once it is done, there may be routes to start from."""
        if state is None or not self.planner.needs_start(state.engine):
            return
        try:
            plan = self.installed.plan(state, site.fabric, site.in_force)
        except NotYet:
            raise
        except SarError as error:
            log.info("starting from no routes: %s", error)
        else:
            if plan:
                self.planner.adopt(plan)

    def due(self, status: SmStatus | None) -> str:
        """Why amended tables should become a generation of their own now; empty where there are
        none, or they are not old enough."""
        if status is None or not status.ours or not status.amendments:
            self._since = None
            return ""
        if self._since is None or self._since[0] != status.identity:
            self._since = status.identity, self.clock()
        if self.clock() - self._since[1] < self.quiet:
            return ""
        self.planner.keep_shelter(None)
        name = self.installed.manager.name
        return f"generation {status.generation} is in force as {name} has repaired it"

    def _still_serves(self, generation: int, fabric: Fabric) -> bool:
        """Whether the generation, none of whose entries was changed, was made for this fabric, or
        for this one and switches that are dead now."""
        try:
            kept = self.installed.generations.read(generation)
        except SarError:  # not kept
            return False
        return kept.fabric_digest == fabric.digest or lacks_switches(fabric, kept)

    def _judged(self, found: InForce, state: State, fabric: Fabric) -> Plan:
        """The tables as a plan. Raises `SarError` where they do not pass the checks."""
        routes = completed(fabric, replace(found.routes, fabric_digest=fabric.digest))
        mix, order = self.installed.mix_of(state, fabric), file_to_numbers(fabric, found.file)
        return make_plan(found.generation, fabric, mix, routes, self.planner.last, order)


def is_amended(status: SmStatus, state: State, fabric: Fabric) -> bool:
    """Whether the generation that `state` names is in force, and the manager has changed it, or
    changed it back, since the state was saved."""
    if not is_of(status, state):
        return False
    moved = status.amendments > 0 and fabric.digest.hex() != state.fabric_digest
    return moved or status.identity != state.identity


def is_of(status: SmStatus, state: State) -> bool:
    """Whether the generation that `state` names is in force, with amendments or without."""
    return status.ours and bool(status.generation) and status.generation == state.generation
