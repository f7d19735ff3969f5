"""What if this switch or cable is pulled, or one more switch is there?

The fabric is changed as asked, and the engine routes it: from the tables in force where it can
start from them, else anew. Whatever comes out is proved and measured like routes that would be
installed. Switches that are cut off count as dead, and their hosts as lost.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.cable_names import cable_name, host_cable_name, switch_words
from sar_agent.fabric.components import connected_components
from sar_agent.jobs import Job
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.reports.places import Places
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.wording import job_words, some
from sar_agent.routing import Options
from sar_agent.routing.engine import Engine, PreviousRoutes, Rerouting
from sar_agent.routing.lanes import with_lanes
from sar_agent.routing.routes import Routes
from sar_agent.util.plural import plural

JOBS_SHOWN, HOSTS_SHOWN = 8, 8


@dataclass(frozen=True)
class JobAfter:
    """What happens to one job that runs on several leaf switches."""

    job: str
    user: str
    lost_hosts: tuple[str, ...]
    fewer_ports: tuple[str, ...]
    """Hosts that lose a port and keep another."""
    at_once: tuple[float, float | None]
    """All messages at once, before and after: times as long as without contention; None where the
    job has no two leaf switches left."""
    one_at_a_time: tuple[float, float | None]
    """Phase contention, before and after."""


@dataclass(frozen=True)
class WhatIf:
    """What one change brings."""

    changed: tuple[str, ...]
    """Switches and cables by name."""
    lost_hosts: tuple[str, ...]
    """Hosts with no port left in the network."""
    routes_over: int
    """Routes of jobs that lead over what is pulled, by the tables of now."""
    load: tuple[float, float | None]
    """The largest predicted load before and after; None where no routes can be made."""
    engine: str
    entries_changed: int | None
    """Entries of live switches that differ; None where the fabric has other nodes."""
    proved: bool
    """Every pair is reached, and nothing can close a credit loop."""
    problem: str
    """Why the routes afterwards cannot be installed; empty where they can."""
    jobs: tuple[JobAfter, ...]
    """Jobs that change, the worst hit first."""
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    @property
    def harm(self) -> tuple[int, float]:
        """To sort by: lost hosts of jobs, then the largest load."""
        after = np.inf if self.load[1] is None else self.load[1]
        return sum(len(job.lost_hosts) for job in self.jobs), after

    def line(self) -> str:
        """For a list of many."""
        lost = f", {plural(len(self.lost_hosts), 'host')} lost" if self.lost_hosts else ""
        proof = "" if self.proved else f"; not proved: {self.problem}"
        return f"{', '.join(self.changed)}: largest load {_change(self.load)}{lost}{proof}"

    def words(self) -> str:
        """For people."""
        lines = list(self.changed)
        if self.lost_hosts:
            lines.append(f"hosts lost: {some(self.lost_hosts, HOSTS_SHOWN)}")
        lines += [
            f"routes of jobs that lead over it now: {self.routes_over}",
            f"largest load: {_change(self.load)}",
            f"{self.engine} afterwards: "
            + ("proved" if self.proved else f"not proved: {self.problem}")
            + (
                ""
                if self.entries_changed is None
                else f"; {plural(self.entries_changed, 'entry changes', 'entries change')}"
            ),
        ]
        for job in self.jobs[:JOBS_SHOWN]:
            lost = f", loses {some(job.lost_hosts, HOSTS_SHOWN)}" if job.lost_hosts else ""
            if job.fewer_ports:
                lost += f", a port fewer at {some(job.fewer_ports, HOSTS_SHOWN)}"
            lines.append(
                f"{job_words(job.job, job.user)}: all messages at once {_change(job.at_once)}, "
                f"one at a time {_change(job.one_at_a_time)} times as long as without contention"
                f"{lost}"
            )
        if (more := len(self.jobs) - JOBS_SHOWN) > 0:
            lines.append(f"and {more} more jobs change")
        if not self.jobs:
            lines.append("no job changes")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def without(fabric: Fabric, places: Places) -> Fabric:
    """The fabric without these switches and cables, and without what that cuts off."""
    damaged = fabric.with_links_down(places.channels, places.terminals)
    damaged = damaged.with_switches_down(places.switches) if places.switches else damaged
    cut_off = np.flatnonzero(connected_components(damaged) > 0)
    return damaged.with_switches_down(cut_off.tolist()) if len(cut_off) else damaged


def names_of(fabric: Fabric, places: Places) -> tuple[str, ...]:
    """What is pulled."""
    return (
        *(f"switch {switch_words(fabric, s)}" for s in places.switches),
        *(f"cable {cable_name(fabric, c)}" for c in places.channels),
        *(f"cable {host_cable_name(fabric, t)}" for t in places.terminals),
    )


def pulled(dumps: SiteDumps, engine: Engine, places: Places) -> WhatIf:
    """What it brings to pull these switches and cables."""
    fabric, cables = dumps.fabric, places.cables_of(dumps.fabric)
    back = fabric.channel_reverse[list(cables.channels)].tolist()
    ways = sorted({*cables.channels, *back})
    if places.switches and not places.channels:  # a route enters a switch once at most
        ways = [w for w in ways if fabric.channel_target[w] in places.switches]
    over = int(dumps.traffic.efi[ways].sum()) + _over_host_cables(dumps, places)
    return what_if(dumps, engine, without(fabric, places), names_of(fabric, places), over)


def _over_host_cables(dumps: SiteDumps, places: Places) -> int:
    """The routes of jobs, to or from a host, over the cables of hosts that are pulled by name."""
    pulled_too, over = set(places.terminals), 0
    for job in dumps.mix.jobs:
        size, of_job = len(job.terminals), len(pulled_too.intersection(job.terminals))
        over += size * (size - 1) - (size - of_job) * (size - of_job - 1)
    return over


def what_if(
    dumps: SiteDumps,
    engine: Engine,
    after: Fabric,
    changed: tuple[str, ...],
    routes_over: int = 0,
    notes: tuple[str, ...] = (),
) -> WhatIf:
    """What the engine makes of the fabric `after`, with the jobs of now."""
    before, mix = dumps.fabric, multi_switch_mix(after, dumps.mix.jobs)
    lost = {h for h, of in before.hosts.items() if before.terminal_up[list(of)].any()}
    lost -= {h for h, of in after.hosts.items() if after.terminal_up[list(of)].any()}
    now = float(dumps.traffic.load[before.channel_up].max(initial=0.0))
    same = before.switches == after.switches
    entries, then, problem = None, None, ""
    try:
        routes = _routes(dumps, engine, after)
        problem = "; ".join(check_routes(after, routes).problems)
        then = traffic_of(after, mix, routes)
        if same:
            rows = np.concatenate([after.terminal_up, after.switch_up])
            differ = routes.egress[0] != dumps.routes.egress[0]
            entries = int(np.count_nonzero(differ[np.ix_(rows, after.switch_up)]))
    except SarError as error:
        problem = str(error)
    load = None if then is None else float(then.load[after.channel_up].max(initial=0.0))
    return WhatIf(
        changed,
        tuple(sorted(lost)),
        routes_over,
        (now, load),
        engine.name,
        entries,
        then is not None and not problem,
        problem,
        _jobs(dumps, then, lost, after),
        notes,
    )


def _routes(dumps: SiteDumps, engine: Engine, after: Fabric) -> Routes:
    """The engine's routes with lanes. Raises `SarError`."""
    mix, options = multi_switch_mix(after, dumps.mix.jobs), Options()
    if isinstance(engine, Rerouting) and dumps.routes.engine == engine.name:
        made = PreviousRoutes(dumps.fabric, dumps.mix, dumps.routes)
        routes = engine.reroute(made, after, mix, options)
    else:
        routes = engine.route(after, mix, options)
    return with_lanes(routes, after, mix, options)


def _jobs(
    dumps: SiteDumps, then: Traffic | None, lost: set[str], after: Fabric
) -> tuple[JobAfter, ...]:
    """Jobs of which a measure changes by a hundredth, or that lose hosts or ports of hosts."""
    gone = _ports_gone(dumps.fabric, after)
    users = {record.id: record.user for record in dumps.records}
    found = []
    for job in dumps.mix.whole_jobs:
        hosts = {dumps.fabric.terminal_host[t] for t in job.terminals} & lost
        fewer = {dumps.fabric.terminal_host[t] for t in gone.intersection(job.terminals)} - lost
        (load, phase), (load_then, phase_then) = _times(dumps.traffic, job), _times(then, job)
        at_once, phases = (load or 1.0, load_then), (phase or 1.0, phase_then)
        if hosts or fewer or any(_differ(*each) for each in (at_once, phases)):
            names = tuple(sorted(hosts)), tuple(sorted(fewer))
            found.append(JobAfter(job.id, users.get(job.id, ""), *names, at_once, phases))
    return tuple(sorted(found, key=_hurt, reverse=True))


def _ports_gone(before: Fabric, after: Fabric) -> set[int]:
    """Terminals of `before` that are down in `after`; none where the fabric was enlarged, which
    takes no port."""
    if before.terminals != after.terminals or before.switches != after.switches:
        return set()
    return set(np.flatnonzero(before.terminal_up & ~after.terminal_up).tolist())


def _times(traffic: Traffic | None, job: Job) -> tuple[float | None, float | None]:
    """All messages at once, one at a time: of the job's slowest rail; None where it has none."""
    parts = list(traffic.mix.parts_of(job.id)) if traffic else []
    if traffic is None or not parts:
        return None, None
    at_once = max(1.0, float(traffic.job_load[parts].max()))
    return at_once, max(1.0, float(traffic.phase_contention[parts].max()))


def _differ(before: float, after: float | None) -> bool:
    return after is None or abs(after - before) >= 0.01 * before


def _hurt(job: JobAfter) -> tuple[int, int, float]:
    before, after = job.at_once
    return len(job.lost_hosts), len(job.fewer_ports), np.inf if after is None else after / before


def _change(values: tuple[float, float | None]) -> str:
    before, after = values
    return f"{before:.2f} → {'none' if after is None else format(after, '.2f')}"
