"""The routes in force: the one place that knows them, in this process and on disk.

Passes, routing keys and rollbacks record here what they read back after an install, so that
nothing is believed that was not read. Tables are read again only when something may have changed
them.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass

from sar_agent.agent.decide import RoutesBasis
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import InputError, SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.same_hosts import same_hosts
from sar_agent.formats.conversion import file_to_numbers, file_to_routes
from sar_agent.install.amended import completed
from sar_agent.install.generations import Generations
from sar_agent.install.plan import Plan, make_plan
from sar_agent.install.subnet_manager import InForce, SmStatus, SubnetManager
from sar_agent.install.transit import CommitResult
from sar_agent.jobs import JobMix
from sar_agent.jobs.mapping import mix_of_host_sets
from sar_agent.routing.repair import same_indices
from sar_agent.routing.routes import Routes
from sar_agent.util.problem_log import ProblemLog

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlannedRoutes:
    """The last plan, installed or not."""

    basis: RoutesBasis
    routes: Routes
    fabric_digest: bytes
    """Of the fabric on whose indices `routes` are."""


class InstalledRoutes:
    """`state.json` and `generations/` in the state folder, the manager's tables, the last plan."""

    def __init__(self, config: Config, manager: SubnetManager, problems: ProblemLog) -> None:
        self.manager, self.problems = manager, problems
        folder = config.agent.state_dir
        self.store = StateStore(folder)
        self.generations = Generations(folder, config.agent.generations_kept)
        self.planned: PlannedRoutes | None = None
        self._in_force: InForce | None = None
        self._read_from: object = None
        """What names the state of manager and fabric that `_in_force` was read in."""
        self._plan: tuple[str, Plan] | None = None
        """The plan in force with the identity of its tables, where this process knows it."""
        self._kept: Plan | None = None
        """The last plan that this process installed."""

    @property
    def identity(self) -> str:
        """Identity of the plan in force; empty where this process does not know it."""
        return self._plan[0] if self._plan else ""

    def read(self, status: SmStatus | None, fabric: Fabric) -> InForce | None:
        """The tables in force on the indices of `fabric`, whichever engine made them; None where
        they are not known.

        `status` is the manager's, None where it does not answer."""
        version = status.tables_version if status else None
        read_from = version, fabric.digest
        if version is not None and read_from == self._read_from:
            return self._in_force
        self._in_force, self._read_from = None, None
        try:
            self._in_force, problem = self.manager.routes_in_force(fabric, wait=False), ""
            self._read_from = read_from
        except SarError as error:
            problem = f"what is in force is not known: {error}"
        self.problems.problem("tables", problem)
        return self._in_force

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

    def plan(self, state: State, fabric: Fabric, known: InForce | None = None) -> Plan | None:
        """The plan in force: the one installed last or, after a restart or somebody's rollback, the
        one that the tables in force are. None where a pass has to plan first: the fabric has
        changed since, or other tables are in force. `known` was read a moment ago. Raises
        `SarError` where the tables cannot be read."""
        if fabric.digest.hex() != state.fabric_digest:
            return None
        if self._plan is None or self._plan[0] != state.identity:
            found = known if known and known.confirmed else self.manager.routes_in_force(fabric)
            if not found.confirmed or found.identity != state.identity:
                return None
            mix = mix_of_host_sets(fabric, state.jobs)
            routes, order = completed(fabric, found.routes), file_to_numbers(fabric, found.file)
            number = found.generation or state.generation
            plan = make_plan(number, fabric, mix, routes, order=order)
            self._plan = found.identity, plan
        return self._plan[1]

    def keep(self, result: CommitResult, state: State, replaces: int | None = None) -> None:
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
        self._in_force = result.in_force
        self._read_from = result.in_force.status.tables_version, plan.fabric.digest
        self._plan = result.in_force.identity, plan
        self._kept = plan
        self.remember(plan, state.basis)

    def as_installed(self, generation: int, fabric: Fabric) -> Routes:
        """The routes of a generation as it was installed, before any amendment, on the indices of
        `fabric`. Raises `InputError` where it is not kept."""
        kept = self._kept
        if kept and kept.generation == generation and same_indices(kept.fabric, fabric):
            return kept.routes
        return file_to_routes(fabric, self.generations.read(generation))

    def mix_of(self, state: State, fabric: Fabric) -> JobMix:
        """The jobs of the state on `fabric`. Where this process has planned for them, their traffic
        and weights are known, too."""
        plan = self._plan[1] if self._plan else None
        if plan and self.identity == state.identity and same_hosts(plan.fabric, fabric):
            return plan.mix
        return mix_of_host_sets(fabric, state.jobs)

    def follow(self, plan: Plan, found: InForce, state: State) -> State:
        """`found` is in force, which the manager made of what `state` names, and `plan` is these
        tables; returns the state that says so. The generation stays kept as it was installed."""
        update = {"identity": found.identity, "fabric_digest": plan.fabric.digest.hex()}
        state = state.model_copy(update=update)
        self.store.save(state)
        self._plan = found.identity, plan
        self.remember(plan, state.basis)
        return state

    def remember(self, plan: Plan, basis: RoutesBasis) -> None:
        """`plan` is what the next decision compares with where nothing is installed."""
        self.planned = PlannedRoutes(basis, plan.routes, plan.fabric.digest)

    def recall(self, state: State, fabric: Fabric) -> None:
        """After a restart, or a rollback, the last plan is the generation that was kept."""
        last = self.planned and (self.planned.basis.generation, self.planned.fabric_digest)
        if last != (state.generation, fabric.digest):
            with suppress(SarError):  # not kept: then only the tables in force are known
                kept = file_to_routes(fabric, self.generations.read(state.generation))
                self.planned = PlannedRoutes(state.basis, kept, fabric.digest)
