"""What a pass observed and did, for others: Prometheus metrics and the job-to-terminal map.

Measures of routes are computed again only when routes, jobs or fabric changed.
"""

from __future__ import annotations

from pathlib import Path

from sar_agent.agent.observe_site import Observation, SiteObserver
from sar_agent.check.reachability import Reachability, check_reachability
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.install.amended import completed
from sar_agent.install.changes import TableChanges
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, SmStatus
from sar_agent.jobs import JobMix
from sar_agent.jobs.jobmap import write_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import Measures, measure
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.routing.routes import Routes
from sar_agent.telemetry.metrics import Metrics, Which
from sar_agent.util.owned_files import PUBLIC_FOLDER, make_folder
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.stages import stage


class CachedMeasures:
    """Measures of one set of routes under one job mix. Of the same routes under other jobs, only
    the jobs that changed are counted."""

    def __init__(self) -> None:
        self._last: tuple[Traffic, Measures] | None = None

    def get(self, fabric: Fabric, mix: JobMix, routes: Routes) -> Measures:
        """Raises `CheckFailed` where a table does not lead everywhere: it cannot be measured."""
        before = self._last[0] if self._last else None
        same = before is not None and self.has(fabric, routes)
        if not (same and self._last and self._last[0].mix.key == mix.key):
            reach = Reachability(0, "") if same else check_reachability(fabric, routes)
            if reach.unreachable_pairs:
                raise CheckFailed(f"{reach.unreachable_pairs} pairs do not reach; {reach.first}")
            with stage("measure"):
                traffic = traffic_of(fabric, mix, routes, before)
                self._last = traffic, measure(fabric, mix, routes, traffic=traffic)
        return self._last[1]

    def has(self, fabric: Fabric, routes: Routes) -> bool:
        """Whether these tables on this fabric were measured last, under any jobs."""
        return bool(
            self._last
            and self._last[0].fabric.digest == fabric.digest
            and self._last[0].routes.same_tables(routes)
        )

    def put(self, plan: Plan) -> None:
        """A plan has been measured already."""
        self._last = plan.traffic, plan.measures


class Publisher:
    """`map_path` is the job-to-terminal map, for sites whose OpenSM has the original SAR patch."""

    def __init__(self, metrics: Metrics, map_path: Path, problems: ProblemLog) -> None:
        self.metrics, self.map_path, self.problems = metrics, map_path, problems
        self._measured: dict[Which, CachedMeasures] = {
            "in_force": CachedMeasures(),
            "planned": CachedMeasures(),
        }
        self._mapped: tuple[JobRecord, ...] | None = None
        """The jobs in the map as last written."""

    def status(self, status: SmStatus | None) -> None:
        """What the subnet manager reported; None where it did not answer."""
        if status is None:
            self.metrics.show_sm(None)
        else:
            self.metrics.show_sm(status.engine, status.generation, status.unknown_terminals)
            self.metrics.repairs_refused.set(status.repairs_refused)

    def sources(self, observer: SiteObserver) -> None:
        """Whether Slurm and the fabric could be read, and when."""
        self.metrics.slurm_reachable.set(not observer.queue.problem)
        self.metrics.slurm_read.set(observer.queue.at)
        self.metrics.fabric_read.set(observer.fabric.at)

    def observation(self, site: Observation) -> None:
        """Status, sizes and the map of jobs."""
        self.status(site.status)
        self.metrics.jobs.set(len(site.mix.jobs))
        self.metrics.unknown_hosts.set(len(site.jobs.unknown_hosts))
        self.metrics.switches.set(site.fabric.switches)
        self.metrics.terminals.set(site.fabric.terminals)
        self.metrics.channels.set(int(site.fabric.channel_up.sum()))
        self.job_map(site.records)

    def job_map(self, records: tuple[JobRecord, ...]) -> None:
        """Write the map where the jobs changed, or the file is gone; a full disk is logged."""
        if records == self._mapped and self.map_path.exists():
            return
        try:
            make_folder(self.map_path.parent, PUBLIC_FOLDER)
            write_jobmap(self.map_path, records)
        except (SarError, OSError) as error:
            self.problems.problem("map", f"{error}; the old job-to-terminal map stays")
        else:
            self._mapped = records
            self.problems.problem("map", "", "the job-to-terminal map can be written again")

    def measure_in_force(
        self, in_force: InForce | None, fabric: Fabric, mix: JobMix, plan: Plan | None = None
    ) -> Measures | None:
        """Measures of the routes in force; None where they are not known, or do not reach all. Ours
        may leave switches that no packet passes without a route, after a repair. `plan` has been
        measured: its measures serve if these are its tables."""
        routes = in_force.routes if in_force else None
        if routes and in_force and in_force.status.amendments:
            routes = completed(fabric, routes)
        if routes and plan and plan.fabric.digest == fabric.digest:
            known = self._measured["in_force"]
            if not known.has(fabric, routes) and routes.same_tables(plan.routes):
                known.put(plan)
        return self._measure("in_force", fabric, mix, routes)

    def planned(self, routes: Routes | None, fabric: Fabric, mix: JobMix) -> None:
        """The last plan, under the jobs of now; None where there is none for this fabric."""
        self._measure("planned", fabric, mix, routes)

    def new_plan(self, plan: Plan) -> None:
        """A plan, which has been measured already, and its transition."""
        self._measured["planned"].put(plan)
        self.metrics.show_measures("planned", plan.measures)
        if plan.transition:
            self.metrics.transitions.labels(plan.transition.way.value).inc()

    def rerouted(self, plan: Plan, changed: TableChanges, sl2vl_tables: int | None) -> None:
        """`plan` came into force because of a decision; `sl2vl_tables` were sent with it."""
        self.metrics.sl2vl_tables.set(sl2vl_tables or 0)
        self.metrics.entries_changed.set(changed.entries)
        self.metrics.entries_changed_sum.inc(changed.entries)
        self.metrics.blocks_changed.set(changed.blocks)

    def wanted(self, generation: int) -> None:
        """The generation that the agent last installed."""
        self.metrics.generation_wanted.set(generation)

    def _measure(
        self, which: Which, fabric: Fabric, mix: JobMix, routes: Routes | None
    ) -> Measures | None:
        measures = None
        if routes is not None:
            try:
                measures = self._measured[which].get(fabric, mix, routes)
                self.problems.problem(which, "")
            except SarError as error:
                self.problems.problem(which, f"routes {which}: {error}")
        self.metrics.show_measures(which, measures)
        return measures
