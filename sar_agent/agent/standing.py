"""The routes in force and those planned, as this process knows them and as the disk does.

All who install (a pass, a routing key) say here what they read back, so that nothing is believed
that was not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sar_agent.agent.decide import RoutesBasis
from sar_agent.agent.observe import TablesInForce
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.install.generations import Generations
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs.mapping import mix_of_host_sets
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_install import read_in_force
from sar_agent.routing.routes import Routes
from sar_agent.util.problem_log import ProblemLog


@dataclass(frozen=True)
class PlannedRoutes:
    """The last plan, installed or not."""

    made: RoutesBasis
    routes: Routes
    indices: bytes
    """Digest of the fabric whose indices `routes` speak in."""


class InstalledRoutes:
    """`state.json`, `generations/` of the state folder, OpenSM's tables, and the plan in force."""

    def __init__(self, config: Config, bridge: PluginClient, say: ProblemLog) -> None:
        self.bridge, self.say = bridge, say
        self.path = config.agent.routes_path
        folder = config.agent.state_dir
        self.store = StateStore(folder)
        self.generations = Generations(folder, config.agent.generations_kept)
        self.tables = TablesInForce(bridge, config.opensm.lfts_dump)
        self.planned: PlannedRoutes | None = None
        self._plan: Plan | None = None
        """In force, where this process knows it."""

    def plan(self, state: State, fabric: Fabric) -> Plan | None:
        """The plan in force: the one installed last or, after a restart or somebody's rollback,
        what OpenSM's tables say. None where a pass has to plan first: `fabric` is another since, or
        something else is in force. Raises `SarError` where they cannot be read."""
        if fabric.digest.hex() != state.fabric_digest:
            return None
        if self._plan is None or self._plan.generation != state.generation:
            found = read_in_force(self.bridge, fabric)
            if not found.confirmed or found.generation != state.generation:
                return None
            mix = mix_of_host_sets(fabric, state.jobs)
            self._plan = make_plan(found.generation, fabric, mix, found.routes)
        return self._plan

    @property
    def generation(self) -> int | None:
        """Of the plan in force, where this process knows it."""
        return None if self._plan is None else self._plan.generation

    def took(
        self, plan: Plan, found: RoutesFile, status: PluginStatus | None, made: RoutesBasis
    ) -> None:
        """`plan` is in force, and `found` was read back of it."""
        self._plan = plan
        self.tables.took(found, status, plan.fabric)
        self.plans(plan, made)

    def plans(self, plan: Plan, made: RoutesBasis) -> None:
        """What the next decision compares with where nothing is installed."""
        self.planned = PlannedRoutes(made, plan.routes, plan.fabric.digest)

    def plans_again(self, state: State, fabric: Fabric) -> None:
        """After a restart, or a rollback, the plan is the generation that was kept."""
        have = self.planned and (self.planned.made.generation, self.planned.indices)
        if have != (state.generation, fabric.digest):
            with suppress(SarError):  # none is kept: then no more is known than what is in force
                kept = file_to_routes(fabric, self.generations.read(state.generation))
                self.planned = PlannedRoutes(state.made, kept, fabric.digest)

    def keep(self, plan: Plan, instead: int | None = None) -> None:
        """For a rollback, `instead` of another generation; a full disk is no reason to fail."""
        try:
            self.generations.add(plan.generation, self.path)
            self.say.problem("generations", "")
        except SarError as error:
            self.say.problem("generations", f"{error}; no rollback to this generation")
        if instead is not None:
            with suppress(OSError):
                self.generations.path(instead).unlink()
