"""The routes in force and those planned, as this process knows them and as the disk does.

All who install (a pass, a routing key) say here what they read back, so that nothing is believed
that was not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sar_agent.agent.decide import Made
from sar_agent.agent.observe import TablesInForce
from sar_agent.agent.say import SayOnce
from sar_agent.agent.state import State, StateStore
from sar_agent.config import Config
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.install.bridge import Bridge, BridgeStatus
from sar_agent.install.generations import Generations
from sar_agent.install.plan import Plan, file_to_routes, make_plan
from sar_agent.install.routes_file import RoutesFile, read_routes_file
from sar_agent.jobs.mapping import mix_of_host_sets
from sar_agent.routing.routes import Routes


@dataclass(frozen=True)
class Planned:
    """The last plan, installed or not."""

    made: Made
    routes: Routes
    indices: bytes
    """Digest of the fabric whose indices `routes` speak in."""


class Standing:
    """`state.json`, `generations/` of the state folder, OpenSM's tables, and the plan in force."""

    def __init__(self, config: Config, bridge: Bridge, say: SayOnce) -> None:
        self.bridge, self.say = bridge, say
        self.path = config.agent.routes_path
        folder = config.agent.state_dir
        self.store = StateStore(folder)
        self.generations = Generations(folder, config.agent.generations_kept)
        self.tables = TablesInForce(bridge, config.opensm.lfts_dump)
        self.planned: Planned | None = None
        self._plan: Plan | None = None
        """In force, where this process knows it."""

    def plan(self, state: State, fabric: Fabric) -> Plan | None:
        """The plan in force: the one installed last or, after a restart or somebody's rollback,
        what OpenSM's tables say. None where `fabric` is another since, for which a pass will plan.
        Raises `SarError` where they cannot be read."""
        if fabric.digest.hex() != state.fabric_digest:
            return None
        if self._plan is None or self._plan.generation != state.generation:
            file = read_routes_file(self.bridge.dump().path)
            mix = mix_of_host_sets(fabric, state.jobs)
            self._plan = make_plan(file.generation, fabric, mix, file_to_routes(fabric, file))
        return self._plan

    def took(self, plan: Plan, found: RoutesFile, status: BridgeStatus | None, made: Made) -> None:
        """`plan` is in force, and `found` was read back of it."""
        self._plan = plan
        self.tables.took(found, status, plan.fabric)
        self.plans(plan, made)

    def plans(self, plan: Plan, made: Made) -> None:
        """What the next decision compares with where nothing is installed."""
        self.planned = Planned(made, plan.routes, plan.fabric.digest)

    def plans_again(self, state: State, fabric: Fabric) -> None:
        """After a restart, or a rollback, the plan is the generation that was kept."""
        have = self.planned and (self.planned.made.generation, self.planned.indices)
        if have != (state.generation, fabric.digest):
            with suppress(SarError):  # none is kept: then no more is known than what is in force
                kept = file_to_routes(fabric, self.generations.read(state.generation))
                self.planned = Planned(state.made, kept, fabric.digest)

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
