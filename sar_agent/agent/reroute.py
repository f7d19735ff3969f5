"""From jobs and fabric to routes in force: route, check, measure, install, read back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from sar_agent.agent.decide import OUR_ENGINE
from sar_agent.agent.gather import Gatherer, Observation
from sar_agent.agent.planner import Planner
from sar_agent.agent.state import State
from sar_agent.agent.update_strategy import UpdateChoice, UpdateMethod
from sar_agent.agent.updates import Updates
from sar_agent.check.transition import Way
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed, InputError, SarError, Unavailable, Unserved
from sar_agent.fabric import Fabric
from sar_agent.formats.routes_file import RoutesFile, read_generation
from sar_agent.install.changes import TableChanges
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import Plan
from sar_agent.install.transit import CommitResult, NotSafe, Transit
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.record import JobRecord
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_install import (
    InForce,
    NotYet,
    ReadBackDiffers,
    Timed,
    at_work,
    differences,
    next_path,
)
from sar_agent.routing import Engine
from sar_agent.routing.lid_offsets import KeyRows

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Done:
    """A plan, and what was read back once it was in force (None where it was only planned)."""

    plan: Plan
    records: tuple[JobRecord, ...]
    read_back: RoutesFile | None = None
    changed: TableChanges | None = None
    """By the install."""
    choice: UpdateChoice | None = None
    """How it came into force, or why it waits."""


class Rerouter:
    """Makes plans, and puts them in force."""

    def __init__(
        self,
        config: Config,
        engine: Engine,
        bridge: PluginClient,
        gatherer: Gatherer,
        updates: Updates,
        timed: Timed = nullcontext,
    ) -> None:
        self.config, self.bridge, self.updates = config, bridge, updates
        self.gatherer, self.timed = gatherer, timed
        self.planner = Planner(config, engine, timed)
        self.levels = AssignedLevels(config.agent.state_dir)
        self.transit = Transit(
            bridge,
            config.agent.routes_path,
            timed,
            levels=self.levels,
            tries=config.agent.plan_attempts,
        )
        self.keys_lost: Callable[[str], None] = lambda why: None
        """Told why plans hold no routing keys."""

    def reroute(
        self,
        look: Observation,
        state: State | None,
        *,
        install: bool,
        urgent: bool = False,
        worth: Callable[[Plan], bool] = lambda plan: True,
    ) -> Done:
        """Raises `SarError`; then nothing is installed, and what was in force before stays. Nor is
        a plan that is not `worth` it.

        Where the plugin refuses because the fabric has changed since it was read, it is read
        again and planned for again at once, a few times. LIDs that OpenSM has assigned again are
        such a change, too: tables have another digest then.
        """
        fabric, records = look.fabric, look.records
        if not install:
            return Done(self._plan(1, fabric, records), records)
        for left in range(self.config.agent.plan_attempts - 1, -1, -1):
            generation = next_generation(self.config, self.bridge.status(), state)
            if state:
                self.planner.resume(state, fabric, self.bridge)
            plan = self._plan(generation, fabric, records)
            if not worth(plan):
                return Done(plan, records)
            try:
                return self.install(plan, records, urgent=urgent)
            except (Unavailable, InputError, ReadBackDiffers, NotSafe, Unserved):
                # Nobody there, no room on the disk, a bug, no way: another plan does not help.
                raise
            except SarError as error:
                self.gatherer.refresh_fabric(self.timed)
                now = self.gatherer.fabric.value
                if not left or now is None or now.digest == fabric.digest:
                    raise
                log.warning("%s; the fabric has changed meanwhile, planning again", error)
                fabric, records = now, self.gatherer.jobs(now)[0]
        raise AssertionError("unreachable: tries is at least 1")

    def _plan(self, generation: int, fabric: Fabric, records: tuple[JobRecord, ...]) -> Plan:
        """Without routing keys, rather than not at all."""
        mix, planner = mix_of_records(fabric, records).mix, self.planner
        try:
            return planner.plan(generation, fabric, mix)
        except CheckFailed as error:
            if not planner.keys:
                raise
            log.warning("%s; planning without routing keys", error)
            self.keys_lost(str(error))
            return planner.plan(generation, fabric, mix)

    def install(self, plan: Plan, records: tuple[JobRecord, ...], *, urgent: bool = False) -> Done:
        """Raises `SarError` where the plan is not in force afterwards, unless it waits."""

        def go(plan: Plan, before: InForce) -> Done:
            ours = before.status.engine_in_force == OUR_ENGINE
            plan, choice = self.updates.prepare(
                plan,
                before.routes,
                ours,
                records,
                urgent,
                lambda other: self.transit.examined(other, before),
            )
            if choice.how is UpdateMethod.WAIT:
                return Done(plan, records, choice=choice)

            def load() -> CommitResult:
                return self.transit.bring(plan, before, whole=choice.whole)

            arrived = self.updates.put(choice, plan.generation, load)
            self.planner.adopt(arrived.plan)
            return Done(arrived.plan, records, arrived.found, arrived.changed, choice)

        return self.transit.commit(plan, go)

    def install_keys(
        self, generation: int, keys: Mapping[int, KeyRows], stands: Plan
    ) -> CommitResult:
        """Nothing but `keys` (by LID offset) besides `stands`, which is in force, at once or in
        stages, and all of it. Raises `SarError`; then nothing has changed. `NotYet`: a pass has to
        mend first what is in force."""

        def go(plan: Plan, before: InForce) -> CommitResult:
            if why := not_as_planned(before, stands):
                raise NotYet(why)
            if plan.transition and plan.transition.way is Way.FITTED:
                raise NotSafe(plan.transition)
            return self.transit.bring(plan, before)

        arrived = self.transit.commit(self.planner.plan_keys(generation, keys, stands), go)
        self.planner.adopt(arrived.plan)
        return arrived


def not_as_planned(before: InForce, stands: Plan) -> str:
    """Why nothing can be added to `stands`: what was read back is not it, or not all of it; empty
    where it is."""
    status = before.status
    if status.engine_in_force != OUR_ENGINE or before.generation != stands.generation:
        return f"generation {before.generation} is in force, not {stands.generation}"
    if not before.confirmed:
        return at_work(status) or "switches have not confirmed what they were sent"
    if status.unknown_terminals:
        return f"{status.unknown_terminals} ports are not in the routes in force yet"
    if wrong := differences(stands.routes_file(), before.file):
        return f"{wrong} entries in force are not as the plan has them"
    return ""


def next_generation(config: Config, status: PluginStatus, state: State | None) -> int:
    """Above all that anybody has heard of."""
    known = [status.generation_in_force, status.generation_loaded]
    for path in (config.agent.routes_path, next_path(config.agent.routes_path)):
        with suppress(SarError):
            known.append(read_generation(path))
    return 1 + max(known + ([state.generation] if state else []))
