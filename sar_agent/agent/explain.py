"""The explain command: where a job runs, which links it uses, and which of them is its worst."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from sar_agent.agent.build import Site, build_site
from sar_agent.agent.explain_ended import EndedJob, ended_job
from sar_agent.agent.phased_updates import subscribers_of
from sar_agent.agent.planner import Planner
from sar_agent.check.reachability import check_reachability
from sar_agent.config.model import Config
from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, PAIRWISE
from sar_agent.fabric import Fabric
from sar_agent.install.transit import transition_to
from sar_agent.jobs import JobMix
from sar_agent.jobs.find_job import find_job
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.quality.ring_messages import meeting_of, message_words, ring_messages
from sar_agent.quality.worst_links import jobs_over, worst_channels
from sar_agent.routing import load_engine
from sar_agent.routing.collectives.reasons import exceptions_of
from sar_agent.routing.routes import Routes
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.routing.template import nearest_template
from sar_agent.services.keys.description import KeyDescription, keys_of
from sar_agent.services.keys.leases import Leases
from sar_agent.util.plural import plural

RING_SHOWN = 4
"""Messages of rings that are named."""
EXCEPTIONS_SHOWN = 4
"""Exceptions that are named."""


@dataclass(frozen=True)
class ExplainedException:
    """An entry over which the job sends, and which is not the one of tables without jobs."""

    switch: str
    destination: str
    """A host."""
    port: int
    reason: str
    """In words: `keeps the ring of job 4711 apart from job 4802's`."""

    def words(self) -> str:
        """For people."""
        return f"entry of {self.switch} for {self.destination}: {self.reason}"


@dataclass(frozen=True)
class JobUnderRoutes:
    """The job under one set of routes."""

    engine: str
    links: int
    efi_max: int
    """Routes of all jobs over its worst link, which is the one with the largest load, or with most
    routes where the objective is `routes`."""
    own_routes: int
    """This job's among them."""
    worst_link: str
    load: float = 0.0
    """The predicted load of its worst link."""
    phase_contention: float = 1.0
    """What one message at a time costs."""
    contention: dict[str, float] = field(default_factory=dict)
    """What each collective costs, a key of `COLLECTIVES` (`quality/collective_contention.py`)."""
    ring: str = ""
    """Where messages of its ring meet others, and which; empty where they meet none."""
    shared_with: list[str] = field(default_factory=list)
    """Other jobs with routes over its worst link, those with the most first."""
    exceptions: list[ExplainedException] = field(default_factory=list)
    """Those over which it sends, those for rings first; none on tables not of `sar-plus`."""


@dataclass(frozen=True)
class JobExplanation:
    """A job; `in_force` and `planned` are None where there are no routes, or none that matter."""

    job: str
    leaves: dict[str, list[str]]
    """Leaf switch to the job's hosts on it."""
    unknown_hosts: list[str]
    multi_switch: bool
    in_force: JobUnderRoutes | None
    planned: JobUnderRoutes | None
    transition: str = ""
    """How the planned routes may replace those in force, with the proof, in words."""
    keys: list[KeyDescription] = field(default_factory=list)
    """The job's routing keys."""
    update_mode: str = "fast"
    subscribers: int = 0
    """The job's processes that have subscribed to five-phase updates."""

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def words(self) -> str:
        """For people."""
        hosts = len({host for names in self.leaves.values() for host in names})
        switches = plural(len(self.leaves), "leaf switch", "leaf switches")
        lines = [f"job {self.job}: {plural(hosts, 'host')} on {switches}"]
        lines += [f'  "{leaf}": {" ".join(names)}' for leaf, names in self.leaves.items()]
        if self.unknown_hosts:
            lines.append(f"  not in the fabric, left out: {' '.join(self.unknown_hosts)}")
        if not self.multi_switch:
            lines.append("it stays on one leaf switch, so no route between switches is its own")
        for name, under in (("in force", self.in_force), ("planned", self.planned)):
            if under:
                lines.append(
                    f"{name} ({under.engine}): {plural(under.links, 'link')}; the worst is "
                    f"{under.worst_link} with {plural(under.efi_max, 'route')}, "
                    f"{under.own_routes} of them this job's"
                )
                shared = under.shared_with
                lines.append(
                    f"  predicted load {under.load:.2f}"
                    + (
                        "; no other job uses it"
                        if not shared
                        else f"; shared with job{'s' * (len(shared) > 1)} "
                    )
                    + ", ".join(shared[:10])
                    + (f" and {len(shared) - 10} more" if len(shared) > 10 else "")
                )
                lines.append(
                    f"  one message at a time: {under.phase_contention:.2f} times as long as "
                    "without contention"
                )
                others = {w: v for w, v in under.contention.items() if w not in (AT_ONCE, PAIRWISE)}
                lines.append(
                    "  " + ", ".join(f"{COLLECTIVES[word]} {v:.2f}" for word, v in others.items())
                )
                if under.ring:
                    lines.append(f"  {under.ring}")
                lines += [f"  {each.words()}" for each in under.exceptions[:EXCEPTIONS_SHOWN]]
                if (more := len(under.exceptions) - EXCEPTIONS_SHOWN) > 0:
                    lines.append(f"  and {more} more exceptions; --json lists them")
            elif self.multi_switch:
                lines.append(f"{name}: not known")
        if self.transition:
            lines.append(f"from one to the other: {self.transition}")
        lines += [key.words() for key in self.keys]
        if self.subscribers or self.update_mode == "five-phase":
            lines.append(
                f"mode {self.update_mode}: its {self.subscribers} subscribers are moved to LID "
                "offset 1 before tables change"
            )
        return "\n".join(lines)


def explain(config: Config, wanted: str, site: Site | None = None) -> JobExplanation | EndedJob:
    """Observes Slurm, the fabric and the subnet manager now; changes nothing. `site`: instead of
    the configured one. A job that does not run is looked up in the history. Raises `InputError` for
    one that is in neither, `SarError` where Slurm or the fabric cannot be read."""
    observer = (site or build_site(config)).observer
    observed = observer.observe()
    fabric, mix = observed.fabric, observed.mix
    record = find_job([*observer.running()], wanted)
    if record is None:
        return ended_job(config, wanted)
    leaves: dict[str, list[str]] = {}
    for host in record.hosts:
        for terminal in fabric.job_ports.get(host, ()):
            names = leaves.setdefault(fabric.switch_name[fabric.terminal_switch[terminal]], [])
            if host not in names:
                names.append(host)
    parts = mix.parts_of(record.id)
    in_force = planned = transition = None
    routes = observed.in_force.routes if observed.in_force else None
    if parts:
        by_load = config.agent.objective == "load"
        if routes and not check_reachability(fabric, routes).unreachable_pairs:
            in_force = _under(fabric, mix, parts, routes, by_load)
        engine = load_engine(config.agent.engine)
        plan = Planner(config, engine).plan(1, fabric, mix)
        planned = _under(fabric, mix, parts, plan.routes, by_load)
        transition = transition_to(plan, routes).transition
    return JobExplanation(
        job=record.id,
        leaves=leaves,
        unknown_hosts=[host for host in record.hosts if host not in fabric.hosts],
        multi_switch=bool(parts),
        in_force=in_force,
        planned=planned,
        transition=transition.words if transition else "",
        keys=keys_of(fabric, routes, Leases(config.agent.state_dir), record.numbers),
        update_mode=config.update.mode,
        subscribers=subscribers_of(config, record.numbers),
    )


def _under(
    fabric: Fabric, mix: JobMix, parts: tuple[int, ...], routes: Routes, by_load: bool
) -> JobUnderRoutes:
    """The job of these parts; of several rails, the one with the worst link is looked at."""
    traffic, own = traffic_of(fabric, mix, routes), mix.jobs[parts[0]].id
    value = traffic.job_load if by_load else traffic.job_efi
    j = max(parts, key=lambda part: (value[part], -part))
    worst = int(worst_channels(traffic, by_load=by_load)[j])
    users = jobs_over(traffic, worst, sent=by_load) if worst >= 0 else {}
    rings = ring_messages(fabric, mix, routes)
    where, meeting = meeting_of(rings, parts)
    others = sorted((-routes, job) for job, routes in users.items() if job != own)
    return JobUnderRoutes(
        engine=routes.engine,
        links=len(traffic.links_of(parts)),
        efi_max=int(traffic.job_efi[j]) if worst < 0 else int(traffic.efi[worst]),
        own_routes=users.get(own, 0),
        worst_link=fabric.channel_name(worst) if worst >= 0 else "none",
        load=float(traffic.job_load[j]) if worst < 0 else float(traffic.load[worst]),
        phase_contention=float(traffic.phase_contention[list(parts)].max()),
        contention={
            word: float(traffic.contention(word)[list(parts)].max()) for word in COLLECTIVES
        },
        ring=""
        if where < 0
        else f"its ring waits on {fabric.channel_name(where)}: "
        + ", ".join(message_words(rings, fabric, mix, m) for m in meeting[:RING_SHOWN]),
        shared_with=[id for _, id in others],
        exceptions=_exceptions(fabric, mix, parts, routes),
    )


def _exceptions(
    fabric: Fabric, mix: JobMix, parts: tuple[int, ...], routes: Routes
) -> list[ExplainedException]:
    """Those of the tables of LID offset 0."""
    if routes.engine.partition("+")[0] != SarPlus.name:
        return []
    egress = routes.egress[0]
    template = nearest_template(fabric, egress).egress
    switch, host = fabric.switch_name, fabric.terminal_host
    return [
        ExplainedException(switch[each.switch], host[each.destination], each.port, each.reason)
        for each in exceptions_of(fabric, mix, template, egress, parts)
    ]
