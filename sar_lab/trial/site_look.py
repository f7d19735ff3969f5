"""What a site is, and what a trial on it would show: before anything is installed.

The trial's jobs are put on the nodes of a reservation: every second node of each leaf switch for
the benchmark and, where there is a second job, the others for it. So both send over the same links.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sar_agent.agent.build import Site, build_site
from sar_agent.agent.planner import Planner
from sar_agent.check.transition import Way, examine
from sar_agent.config.model import Config
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.install.plan import make_plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import measure
from sar_agent.routing import Routes, load_engine
from sar_agent.util.hostlist import expand
from sar_agent.util.plural import plural
from sar_agent.util.programs import run_program
from sar_agent.util.text_files import read_text
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.trial.way_back import own_tables

OWN = "own"
"""The site's own tables."""
TABLES = ("ftree", "dmodk", "sar", "sar-plus")
SAME = 0.02
"""Share of time below which two predictions are the same."""
_ADAPTIVE = re.compile(r"^routing_engine\s.*\bar_\w+|^ar_mode\s+[1-9]", re.M)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Of one set of tables, for the benchmark alone or beside the second job."""

    at_once: float
    """Time of the benchmark's all-to-all, all messages at once, in multiples of that on an empty
    network."""
    phases: float
    """One message at a time."""
    load: F64
    """float64[C]: what each channel carries if all send all the time; 1 is its speed."""


@dataclass(frozen=True, eq=False)
class SiteLook:
    """All that a trial needs to know."""

    fabric: Fabric
    own: InForce
    way_back: Routes
    """The site's own tables as a plan."""
    ours: bool
    records: tuple[JobRecord, ...]
    """Jobs that run, then those of the trial."""
    nodes: tuple[str, ...]
    """Of the benchmark."""
    beside: tuple[str, ...]
    """Of the second job; empty without one."""
    tables: dict[str, Routes]
    """`OWN` first."""
    predicted: dict[tuple[str, bool], Predicted]
    """By tables, and whether the second job runs."""
    facts: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    """Reasons why a trial may show nothing."""

    def ratio(self, tables: str, second: bool, kind: str) -> float:
        """The predicted time over that on the site's own tables."""
        before, after = self.predicted[OWN, second], self.predicted[tables, second]
        return float(getattr(after, kind) / getattr(before, kind))


def look(
    config: Config,
    reservation: str,
    names: Sequence[str],
    *,
    second: bool,
    minutes: float | None,
    opensm_conf: Path,
) -> SiteLook:
    """`minutes`: how long the reservation must last from now; None: it need not be active. Raises
    `InputError` where a trial cannot be, in a sentence with the remedy; `SarError` where
    Slurm or OpenSM do not answer or the way back is not proved."""
    site = build_site(config)
    seen = site.observer.observe()
    if seen.status is None or seen.in_force is None:
        raise Unavailable(seen.status_problem or "the tables in force cannot be read")
    fabric, own = seen.fabric, site.manager.routes_in_force(seen.fabric)
    hosts = reserved_hosts(reservation, minutes)
    nodes, others = split_nodes(fabric, hosts, second=second)
    running = [r for r in site.observer.running() if not set(r.hosts) & set(hosts)]
    trial = [JobRecord("1", nodes, "RUNNING"), *([JobRecord("2", others, "RUNNING")] * second)]
    records = (*running, *trial)
    mix = mix_of_records(fabric, records).mix
    try:
        way_back = make_plan(1, fabric, mix, own_tables(fabric, own.file).routes).routes
    except SarError as error:
        raise InputError(
            f"the site's own tables do not pass our checks ({error}), so no way back to them can "
            "be proved",
            remedy="route with ftree or updn first",
        ) from error
    tables, left_out = {OWN: way_back}, []
    for name in names:
        try:
            settings = config.agent.model_copy(update={"engine": name})
            planner = Planner(config.model_copy(update={"agent": settings}), load_engine(name))
            routes = planner.plan(1, fabric, mix).routes
            if config.opensm.method == "file" and routes.virtual_lanes > 1:
                raise Unavailable('its routes need two virtual lanes, and method "file" has one')
            for old, new in ((way_back, routes), (routes, way_back)):
                if (verdict := examine(fabric, old, new)).way is Way.UNSAFE:
                    raise Unavailable(verdict.words)
            tables[name] = routes
        except InputError:
            raise
        except SarError as error:
            left_out.append((f"without {name}", str(error)))
    predicted = {
        (name, both): predict(fabric, trial[: 1 + both], routes)
        for name, routes in tables.items()
        for both in ((False, True) if second else (False,))
    }
    facts = (*_facts(site, fabric, own, running), *left_out)
    found = SiteLook(
        fabric=fabric,
        own=own,
        way_back=way_back,
        ours=own.status.ours,
        records=records,
        nodes=nodes,
        beside=others,
        tables=tables,
        predicted=predicted,
        facts=facts,
        doubts=(),
    )
    return replace(found, doubts=_doubts(found, opensm_conf, second))


def _doubts(found: SiteLook, opensm_conf: Path, second: bool) -> tuple[str, ...]:
    """Reasons why a trial may show nothing."""
    doubts = []
    if opensm_conf.exists() and _ADAPTIVE.search(read_text(opensm_conf)):
        doubts.append(
            f"{opensm_conf}: adaptive routing is on, so switches choose the way of most packets "
            "and tables matter little; turn it off for the trial's service level first"
        )
    ratios = [
        found.ratio(name, both, kind)
        for name in found.tables
        for both in ((False, True) if second else (False,))
        for kind in ("at_once", "phases")
    ]
    if all(abs(ratio - 1) < SAME for ratio in ratios):
        doubts.append(
            "on these nodes the simulations see no difference between any of the tables, so there "
            "is nothing to show; reserve nodes on more leaf switches, or more nodes of each"
        )
    return tuple(doubts)


def reserved_hosts(name: str, minutes: float | None) -> tuple[str, ...]:
    """The nodes of a reservation that is active for long enough, if `minutes` are given. Raises
    `InputError`."""
    remedy = "scontrol show reservation lists them; scontrol create reservation makes one"
    text = run_program(
        ["scontrol", "show", "reservation", "-o"], deadline=30, most=1 << 24, remedy="install Slurm"
    )
    for line in text.splitlines():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if fields.get("ReservationName") != name:
            continue
        if minutes is None:
            return tuple(expand(fields["Nodes"]))
        if fields.get("State") != "ACTIVE":
            raise InputError(f"reservation {name} is not active now", remedy=remedy)
        left = (datetime.fromisoformat(fields["EndTime"]) - datetime.now()).total_seconds() / 60
        if left < minutes:
            raise InputError(
                f"reservation {name} ends in {left:.0f} minutes; a trial may take {minutes:g}",
                remedy="make it longer, or give --minutes",
            )
        return tuple(expand(fields["Nodes"]))
    raise InputError(f"Slurm has no reservation {name}", remedy=remedy)


def split_nodes(
    fabric: Fabric, hosts: Sequence[str], *, second: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(nodes of the benchmark, nodes of the second job). Raises `InputError` where they are too
    few, or on one leaf switch."""
    leaves: dict[int, list[str]] = {}
    for host in hosts:
        ports = [t for t in fabric.job_ports.get(host, ()) if fabric.terminal_up[t]]
        if ports:
            leaves.setdefault(int(fabric.terminal_switch[ports[0]]), []).append(host)
    if not leaves:
        raise InputError(
            f"no node of the reservation is in the fabric, such as {hosts[0]}",
            remedy="the names must be those of the HCAs' descriptions",
        )
    if len(leaves) == 1:
        leaf, nodes = leaves.popitem()
        raise InputError(
            f"all {plural(len(nodes), 'node')} of the reservation are on leaf switch "
            f"{fabric.switch_name[leaf]}, so no message between them leaves it, and there is "
            "nothing to show",
            remedy="reserve nodes on two leaf switches or more",
        )
    of = [sorted(nodes) for nodes in leaves.values()]
    if not second:
        return tuple(sorted(node for nodes in of for node in nodes)), ()
    pairs = [nodes for nodes in of if len(nodes) > 1]
    if len(pairs) < 2:
        raise InputError(
            "the reservation is too small for two jobs: it has "
            f"{plural(len(of), 'leaf switch', 'leaf switches')}, and "
            f"{len(pairs)} of them with two nodes",
            remedy="reserve two nodes on each of two leaf switches, or leave out --beside",
        )
    return (
        tuple(sorted(n for nodes in pairs for n in nodes[::2])),
        tuple(sorted(n for nodes in pairs for n in nodes[1::2])),
    )


def predict(fabric: Fabric, jobs: Sequence[JobRecord], routes: Routes) -> Predicted:
    """For the first of `jobs`, while all of them send; other jobs of the cluster do not."""
    mix: JobMix = mix_of_records(fabric, jobs).mix
    first = next(n for n, job in enumerate(mix.whole_jobs) if job.id == jobs[0].id)
    at_once, phases = (
        float(job_times(fabric, mix, routes, PATTERNS[kind]).time[first])
        for kind in ("alltoall", "shift")
    )
    return Predicted(at_once, phases, measure(fabric, mix, routes).channel_load)


def _facts(
    site: Site, fabric: Fabric, own: InForce, running: Sequence[JobRecord]
) -> list[tuple[str, str]]:
    status = own.status
    try:
        slurm = run_program(["srun", "--version"], deadline=30, most=4096, remedy="").strip()
    except SarError:
        slurm = "unknown"
    return [
        ("fabric", f"{len(fabric.hosts)} hosts, {fabric.switches} switches, LMC {status.lmc}"),
        ("subnet manager", str(status.details.get("opensm_version", site.manager.name))),
        ("own tables", f"of {status.details.get('routes_engine') or status.engine}"),
        ("Slurm", slurm),
        ("other jobs", f"{len(running)} run outside the reservation"),
    ]
