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
from contextlib import suppress
from dataclasses import replace

from sar_agent.agent.current import Current
from sar_agent.agent.decide import Reason
from sar_agent.agent.history import HistoryEntry
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.planner import shelter_of
from sar_agent.agent.state import State
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.install.changes import table_changes
from sar_agent.install.dead_switches import lacks_switches
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.util.plural import plural

log = logging.getLogger(__name__)


class Amendments:
    """Follows what the manager changes in the plan in force."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.installed = parts, parts.installed
        self._amended = ""
        """The identity of amended tables that stay `reoptimise_seconds` before they become a
        generation of their own."""
        self._refused: object = None
        """The amended tables that did not pass the checks, which are logged once."""

    def adopt_repairs(self, current: Current, site: Observation) -> tuple[Current, str]:
        """With what is in force now, and why to wait with any decision: the manager is not done
        with its repair. Empty where there is nothing to wait for."""
        status, state, found = site.status, current.state, current.in_force
        began = time.monotonic()
        if status is None or state is None:
            return current, ""
        name = self.installed.manager.name
        amended = is_amended(status, state, site.fabric)
        if not amended:
            changed = is_of(status, state) and site.fabric.digest.hex() != state.fabric_digest
            if changed and status.state != "built":
                return current, f"{name} is not done with the changed fabric"
            if not changed or not self._still_serves(status.generation, site.fabric):
                return current, ""
        what = f"{name} has repaired generation {status.generation} itself"
        if not amended:
            what = f"generation {status.generation} serves the changed fabric as it is"
        if found is None or found.status.state != "built" or found.identity != status.identity:
            return current, f"{what}, and is not done with it"
        try:
            plan = self.installed.plan_of(current, state, found, site.fabric)
        except SarError as error:
            tables = status.identity, site.fabric.digest
            if tables != self._refused:
                log.warning("%s, but these tables do not pass the checks: %s", what, error)
            self._refused = tables
            return current, ""
        update = {"identity": found.identity, "fabric_digest": plan.fabric.digest.hex()}
        state = state.model_copy(update=update)
        self.installed.store.save(state)  # the generation stays kept as it was installed
        current = replace(current.with_plan(plan, found, state), shelter=shelter_of(plan))
        difference = None
        with suppress(SarError):  # the generation is not kept
            kept = file_to_routes(site.fabric, self.installed.generations.read(plan.generation))
            difference = table_changes(site.fabric, kept, found.routes)
        many = ""
        if difference:
            differ = plural(difference.entries, "entry differs", "entries differ")
            many = f"; {differ} from the plan"
        log.info("%s; the tables pass the checks, going on from them%s", what, many)
        entry = HistoryEntry(Reason.AMENDED, f"{what}{many}", found.routes.engine, None, began)
        self.parts.committer.decisions.add(entry, Result.FOLLOWED, plan, difference, plan.measures)
        return current, ""

    def due(self, status: SmStatus | None) -> str:
        """Why amended tables should become a generation of their own now; empty where there are
        none, or they are not old enough."""
        pace = self.parts.pacing.pace
        amended = status.identity if status and status.ours and status.amendments else ""
        if amended != self._amended:
            self._amended = amended
            pace.put_off("amended", self.parts.config.agent.reoptimise_seconds)
        if status is None or not amended or not pace.due("amended"):
            return ""
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
