"""What a pass saw, and what routes in force and planned are worth: into the metrics."""

from __future__ import annotations

from sar_agent.agent.gather import Gatherer, Observation
from sar_agent.agent.observe import Worth
from sar_agent.agent.standing import InstalledRoutes
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import PluginStatus
from sar_agent.quality import Measures
from sar_agent.routing.routes import Routes
from sar_agent.telemetry.metrics import Metrics, Which
from sar_agent.util.problem_log import ProblemLog


class Show:
    """Measures of routes are computed again only when routes, jobs or fabric changed."""

    def __init__(
        self, metrics: Metrics, gatherer: Gatherer, standing: InstalledRoutes, say: ProblemLog
    ) -> None:
        self.metrics, self.gatherer, self.standing, self.say = metrics, gatherer, standing, say
        self._worth: dict[Which, Worth] = {"in_force": Worth(), "planned": Worth()}

    def ask_status(self) -> PluginStatus | None:
        """What the plugin says now."""
        status, _ = self.gatherer.status()
        self.status(status)
        return status

    def status(self, status: PluginStatus | None) -> None:
        """What OpenSM runs with."""
        if status is None:
            self.metrics.show_sm(None)
        else:
            self.metrics.show_sm(
                status.engine_in_force, status.generation_in_force, status.unknown_terminals
            )

    def sources(self) -> None:
        """Whether Slurm and the fabric could be read, and when."""
        queue, fabric = self.gatherer.queue, self.gatherer.fabric
        self.metrics.slurm_reachable.set(not queue.problem)
        self.metrics.slurm_read.set(queue.at)
        self.metrics.fabric_read.set(fabric.at)

    def look(self, look: Observation, mix: JobMix) -> None:
        """How large it all is."""
        self.metrics.jobs.set(len(mix.jobs))
        self.metrics.unknown_hosts.set(len(look.unknown_hosts))
        self.metrics.switches.set(look.fabric.switches)
        self.metrics.terminals.set(look.fabric.terminals)
        self.metrics.channels.set(int(look.fabric.channel_up.sum()))

    def in_force(self, status: PluginStatus | None, fabric: Fabric, mix: JobMix) -> Measures | None:
        """None where it is not known, or is broken."""
        tables = self.standing.tables
        measures = self._measures("in_force", fabric, mix, tables.look(status, fabric))
        self.metrics.show_measures("in_force", measures)
        self.say.problem("tables", tables.problem)
        return measures

    def planned(self, fabric: Fabric, mix: JobMix) -> None:
        """Of the last plan."""
        planned = self.standing.planned
        routes = planned.routes if planned and planned.indices == fabric.digest else None
        self.metrics.show_measures("planned", self._measures("planned", fabric, mix, routes))

    def plan(self, plan: Plan) -> None:
        """A new plan, which has been measured already."""
        self._worth["planned"].known(plan.fabric, plan.routes, plan.measures, plan.mix)
        self.metrics.show_measures("planned", plan.measures)

    def _measures(
        self, which: Which, fabric: Fabric, mix: JobMix, routes: Routes | None
    ) -> Measures | None:
        if routes is None:
            return None
        try:
            measures = self._worth[which].of(fabric, mix, routes, self.metrics.timed)
        except SarError as error:
            self.say.problem(which, f"routes {which}: {error}")
            return None
        self.say.problem(which, "")
        return measures
