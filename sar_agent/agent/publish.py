"""What a pass observed and did, for others: Prometheus metrics and the job-to-terminal map.

Measures of routes are computed again only when routes, jobs or fabric changed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation, SiteObserver
from sar_agent.agent.outcome import Report
from sar_agent.check.reachability import check_reachability
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.install.amended import completed
from sar_agent.install.changes import TableChanges
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.jobs import JobMix
from sar_agent.jobs.jobmap import write_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import Measures, measure
from sar_agent.routing.routes import Routes
from sar_agent.telemetry.metrics import Metrics, Which
from sar_agent.util.owned_files import PUBLIC_FOLDER, make_folder
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.stages import stage


def measured(last: Measures | None, fabric: Fabric, mix: JobMix, routes: Routes) -> Measures:
    """Measures of routes: `last` where they are of the same routes and jobs. Raises `CheckFailed`
    where a table does not lead everywhere: it cannot be measured."""
    if last and has_tables(last, fabric, routes):
        if last.traffic.mix.key == mix.key:
            return last
    elif (reach := check_reachability(fabric, routes)).unreachable_pairs:
        raise CheckFailed(f"{reach.unreachable_pairs} pairs do not reach; {reach.first}")
    with stage("measure"):
        return measure(fabric, mix, routes)


def has_tables(measured: Measures, fabric: Fabric, routes: Routes) -> bool:
    """Whether these tables on this fabric were measured, under any jobs."""
    traffic = measured.traffic
    return traffic.fabric.digest == fabric.digest and traffic.routes.same_tables(routes)


class Publisher:
    """`map_path` is the job-to-terminal map, for sites whose OpenSM has the original SAR patch."""

    def __init__(self, metrics: Metrics, map_path: Path, problems: ProblemLog) -> None:
        self.metrics, self.map_path, self.problems = metrics, map_path, problems
        self._mapped: tuple[JobRecord, ...] | None = None
        """The jobs in the map as last written."""

    def status(self, status: SmStatus | None) -> None:
        """What the subnet manager reported; None where it did not answer."""
        if status is None:
            self.metrics.show_sm(None)
        else:
            self.metrics.show_sm(status.engine, status.generation, status.unknown_terminals)
            self.metrics.repairs_refused.set(status.repairs_refused)

    def passed(self, report: Report) -> None:
        """A pass has ended."""
        now = time.time()
        self.metrics.last_pass_timestamp_seconds.set(now)
        if report.ok:
            self.metrics.last_success_timestamp_seconds.set(now)

    def sources(self, observer: SiteObserver) -> None:
        """Whether Slurm and the fabric could be read, and when."""
        self.metrics.slurm_reachable.set(not observer.queue.problem)
        self.metrics.slurm_read_timestamp_seconds.set(observer.queue.at)
        self.metrics.fabric_read_timestamp_seconds.set(observer.fabric.at)
        for source, age in observer.ages.items():
            self.metrics.show_age(source, age.at, bool(age.stale))
        self.metrics.dump_timestamp_seconds.set(observer.dump.built_at if observer.dump else 0)
        self.metrics.dump_outdated.set(bool(observer.dump_outdated))

    def observation(self, site: Observation) -> None:
        """Status, sizes and the map of jobs."""
        self.status(site.status)
        self.metrics.multi_switch_jobs.set(len(site.mix.whole_jobs))
        self.metrics.unknown_hosts.set(len(site.unknown_hosts))
        self.metrics.fabric_switches.set(site.fabric.switches)
        self.metrics.fabric_terminals.set(site.fabric.terminals)
        self.metrics.fabric_channels.set(int(site.fabric.channel_up.sum()))
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

    def in_force(self, current: Current, fabric: Fabric, mix: JobMix) -> Current:
        """With measures of the routes in force; None where they are not known, or do not reach all.
        Ours may leave switches that no packet passes without a route, after a repair. The last
        plan has been measured: its measures serve if these are its tables."""
        found, last, plan = current.in_force, current.measured, current.last
        routes = found.routes if found else None
        if routes and found and found.status.amendments:
            routes = completed(fabric, routes)
        if routes and plan and not (last and has_tables(last, fabric, routes)):
            last = plan.measures if has_tables(plan.measures, fabric, routes) else last
        now = self._measure("in_force", last, fabric, mix, routes)
        return replace(current, measured=now or last, measures=now)

    def planned(self, current: Current, fabric: Fabric, mix: JobMix) -> Current:
        """With measures of the last plan, if it is for this fabric, under the jobs of now. Where it
        is in force, it has been measured."""
        plan = current.planned
        if plan is None or plan.fabric_digest != fabric.digest:
            self.metrics.show_measures("planned", None)
            return current
        last, known = plan.measured or current.measured, current.measures
        if known and has_tables(known, fabric, plan.routes):
            last = known
        now = self._measure("planned", last, fabric, mix, plan.routes)
        return replace(current, planned=replace(plan, measured=now or plan.measured))

    def new_plan(self, plan: Plan) -> None:
        """A plan, which has been measured already, and its transition."""
        self.metrics.show_measures("planned", plan.measures)
        if plan.transition:
            self.metrics.transitions.labels(plan.transition.way.value).inc()

    def rerouted(self, changed: TableChanges, sl2vl_tables: int | None) -> None:
        """A plan came into force because of a decision; `sl2vl_tables` were sent with it."""
        self.metrics.last_reroute_sl2vl_tables.set(sl2vl_tables or 0)
        self.metrics.last_reroute_entries_changed.set(changed.entries)
        self.metrics.lft_entries_changed.inc(changed.entries)
        self.metrics.last_reroute_blocks_changed.set(changed.blocks)

    def _measure(
        self,
        which: Which,
        last: Measures | None,
        fabric: Fabric,
        mix: JobMix,
        routes: Routes | None,
    ) -> Measures | None:
        now = None
        if routes is not None:
            try:
                now = measured(last, fabric, mix, routes)
                self.problems.problem(which, "")
            except SarError as error:
                self.problems.problem(which, f"routes {which}: {error}")
        self.metrics.show_measures(which, now)
        return now
