"""The routes in force on disk and at the subnet manager: what a `Current` is made from, and where
it is put on record.

Passes, routing keys and rollbacks record here what they read back after an install, so that
nothing is believed that was not read.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

from sar_agent.agent.current import Current, PlannedRoutes
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.demand.endpoints import mix_of_host_sets
from sar_agent.errors import InputError, SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.same_hosts import same_hosts
from sar_agent.formats.conversion import file_to_numbers, file_to_routes
from sar_agent.install.amended import completed
from sar_agent.install.generations import Generations
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.subnet_manager import InForce, SmStatus, SubnetManager
from sar_agent.install.transit import CommitResult
from sar_agent.util.problem_log import ProblemLog

log = logging.getLogger(__name__)


class InstalledRoutes:
    """`state.json` and `generations/` in the state folder, and the manager."""

    def __init__(self, config: Config, manager: SubnetManager, problems: ProblemLog) -> None:
        self.manager, self.problems = manager, problems
        folder = config.agent.state_dir
        self.store = StateStore(folder)
        self.generations = Generations(folder, config.agent.generations_kept)

    def load_state(self, status: SmStatus | None) -> State | None:
        """The saved state. Raises `InputError` where it cannot be read while our routes are in
        force: they may be held. With another engine's in force nothing is held, and a repair does
        not wait."""
        try:
            return self.store.load()
        except InputError as error:
            if status is None or status.ours or status.engine == "none":
                raise
            log.warning("%s; repairing without it, as engine %s is in force", error, status.engine)
            return None

    def recover(self) -> None:
        """Finish what a process that died, or an install past its deadline, left behind. While the
        manager is not done with it, the next pass asks again, and none installs before."""
        try:
            done = self.manager.recover()
        except SarError as error:
            self.problems.problem("finish", str(error))
        else:
            self.problems.problem("finish", "")
            if done:
                log.info("%s", done)

    def know_plan(self, current: Current, fabric: Fabric, known: InForce | None = None) -> Current:
        """With the plan in force: the one installed last or, after a restart or somebody's
        rollback, the one that the tables in force are. Without where a pass has to plan first: the
        fabric has changed since, or other tables are in force. `known` was read a moment ago.
        Raises `SarError` where the tables cannot be read."""
        state = current.state
        if state is None or fabric.digest.hex() != state.fabric_digest:
            return current
        if current.plan_in_force(fabric):
            return current
        found = known if known and known.confirmed else self.manager.routes_in_force(fabric)
        if not found.confirmed or found.identity != state.identity:
            return current
        plan = self.plan_of(current, state, found, fabric)
        return replace(current, plan=plan, identity=found.identity)

    def plan_of(self, current: Current, state: State, found: InForce, fabric: Fabric) -> Plan:
        """The tables in force as a plan for the jobs of the state; where this process has planned
        for them, their traffic and weights are known, too. Raises `SarError` where the tables do
        not pass the checks."""
        plan, mix = current.plan, mix_of_host_sets(fabric, state.jobs)
        if plan and current.identity == state.identity and same_hosts(plan.fabric, fabric):
            mix = plan.mix
        routes = completed(fabric, replace(found.routes, fabric_digest=fabric.digest))
        number, order = found.generation or state.generation, file_to_numbers(fabric, found.file)
        return make_plan(number, fabric, mix, routes, current.last, order)

    def keep(
        self, current: Current, result: CommitResult, state: State, replaces: int | None = None
    ) -> Current:
        """`result` is in force, and `state` says so. `replaces`: a kept generation that gives way.
        A full disk is logged, and no reason to fail."""
        plan = result.plan
        try:
            self.generations.add(plan.generation, plan.image)
            self.problems.problem("generations", "")
        except SarError as error:
            self.problems.problem("generations", f"{error}; no rollback to this generation")
        if replaces is not None:
            with suppress(OSError):
                self.generations.path(replaces).unlink()
        self.store.save(state)
        read_from = result.in_force.status.tables_version, plan.fabric.digest
        current = replace(current, in_force=result.in_force, read_from=read_from)
        return current.with_plan(plan, result.in_force, state)

    def recall(self, current: Current, fabric: Fabric) -> Current:
        """After a restart, or a rollback, the last plan is the generation that was kept."""
        state, planned = current.state, current.planned
        last = planned and (planned.made.generation, planned.fabric_digest)
        if state and last != (state.generation, fabric.digest):
            with suppress(SarError):  # not kept: then only the tables in force are known
                kept = file_to_routes(fabric, self.generations.read(state.generation))
                made = PlannedRoutes(state, kept, fabric.digest)
                return replace(current, planned=made)
        return current
