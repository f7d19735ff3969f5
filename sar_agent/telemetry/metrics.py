"""All metrics of the agent, each declared once, in groups.

Passes set the values, and a scrape reads them. The contention of collectives alone is computed by
the first scrape after a change, so that no pass waits for it. Units are base units. No label holds
a job number, a user or a host, so the number of series does not grow with the site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from prometheus_client import Gauge, Info, ProcessCollector, disable_created_metrics

from sar_agent.demand.collectives import COLLECTIVES
from sar_agent.errors import Unavailable
from sar_agent.events.message import RefusalReason
from sar_agent.opensm.plugin_install import OUR_ENGINE
from sar_agent.quality.measures import CollectiveMeasure, Measures
from sar_agent.services.five_phase.messages import Phase
from sar_agent.telemetry.declare import JobDistribution, MetricGroup, counter, gauge, seconds
from sar_agent.telemetry.http_server import serve_http
from sar_agent.telemetry.watch_metrics import WatchMetrics
from sar_agent.util.extensions import extension_names

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

Which = Literal["in_force", "planned", "baseline"]
ERROR_PLACES = (
    "pass", "keys", "status", "events", "waiting", "server", "peer",
    *extension_names("sar_agent.services"),
    "look at Slurm", "look at the fabric", "look at the topology",
)  # fmt: skip
"""Parts of the agent that catch unexpected errors."""
STAGES = (
    "slurm", "fabric", "route", "check", "senders", "certificate", "measure", "transition",
    "write", "load", "read_back", "drain",
)  # fmt: skip
SOURCES = ("jobs", "fabric", "tables", "counters")
"""`agent.source_ages.Source`, a type above this one."""
UPDATE_METHODS = ("direct", "staged", "five-phase", "none")
"""`agent.update_strategy.UpdateMethod`, a type above this one; "none" for what was refused."""
UPDATE_RESULTS = ("installed", "given_up", "refused")
MEASURES = (
    "dark_fiber_ratio", "effective_efi_max", "effective_efi_mean", "load_max", "throughput_mean",
    "throughput_min",
)  # fmt: skip
"""Fields of `Measures`, and of `RouteMetrics`."""
_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


class RouteMetrics(MetricGroup):
    """Quality of the routes in force, of the planned routes, and of the baseline (those of
    `agent.baseline`), for the running jobs."""

    dark_fiber_ratio = gauge(
        "Share of live channels between switches that no route of a running job uses.", routes=()
    )
    effective_efi_max = gauge(
        "Largest effective edge forwarding index: routes inside jobs over one channel.", routes=()
    )
    effective_efi_mean = gauge(
        "Mean effective edge forwarding index over all live channels.", routes=()
    )
    load_max = gauge(
        "Largest load of a channel if every job does an all-to-all at once; 1 is the capacity.",
        routes=(),
        name="channel_load_max",
    )
    throughput_mean = gauge(
        "Mean share of full speed that jobs get if every job does an all-to-all at once.",
        routes=(),
        name="job_throughput_mean_ratio",
    )
    throughput_min = gauge(
        "Share of full speed that the slowest job gets if every job does an all-to-all at once.",
        routes=(),
        name="job_throughput_min_ratio",
    )
    collective_mean = gauge(
        "Time that a collective takes while all jobs run it, in multiples of the time without "
        "contention; mean over the jobs.",
        routes=(),
        collective=(),
        name="collective_contention_mean",
    )
    collective_worst = gauge(
        "The same of the slowest job.",
        routes=(),
        collective=(),
        name="collective_contention_max",
    )
    collective_meet = gauge(
        "Running multi-switch jobs whose messages meet others on a link in a collective.",
        routes=(),
        collective=(),
        name="collective_meeting_jobs",
    )
    lower_bound_effective_efi_max = gauge(
        "Lower bound of the largest effective EFI of the running jobs under any forwarding tables."
    )
    lower_bound_channel_load_max = gauge(
        "Lower bound of the largest channel load of the running jobs under any forwarding tables."
    )


class SiteMetrics(MetricGroup):
    """The site as the agent sees it: Slurm, the fabric, the subnet manager."""

    multi_switch_jobs = gauge("Running jobs on at least two leaf switches.")
    unknown_hosts = gauge("Hosts of running jobs that topology.conf or the fabric does not have.")
    repairs_refused = gauge(
        "Repairs that the plugin has not installed since OpenSM started, as they did not hold."
    )
    fabric_switches = gauge("Switches in the fabric when it was last read.")
    fabric_terminals = gauge("HCA ports in the fabric when it was last read.")
    fabric_channels = gauge(
        "Live directed channels between switches in the fabric when it was last read."
    )
    slurm_reachable = gauge("1 if the queue could be read last time, else 0.")
    slurm_read_timestamp_seconds = gauge("Unix time at which the queue was last read.")
    fabric_read_timestamp_seconds = gauge("Unix time at which the fabric was last read.")
    source_timestamp_seconds = gauge(
        "Unix time of what the agent knows, by source: of a file, when it was written; 0 where it "
        "was never read.",
        source=SOURCES,
    )
    source_stale = gauge(
        "1 if the source is too old to be believed, or cannot be read again; the page says why.",
        source=SOURCES,
    )
    dump_timestamp_seconds = gauge(
        "Unix time at which the dump (opensm.lfts_dump) was written that tells the tables in "
        "force; 0 where no dump does."
    )
    dump_outdated = gauge(
        "1 if that dump may not tell the tables any more: OpenSM has started since, the fabric has "
        "changed since, or it is older than a week; else 0."
    )
    sm_reachable = gauge("1 if OpenSM's plugin answered last time, else 0.")
    engine_in_force = gauge("1 for the routing engine that OpenSM uses.", engine=(OUR_ENGINE,))
    generation_in_force = gauge(
        "Generation of the routes that OpenSM has in force; 0 if another engine made them."
    )
    generation_installed = gauge("Generation of the routes that the agent last installed.")
    unknown_terminals = gauge("Live HCA ports for which the routes in force have no entry.")


class PassMetrics(MetricGroup):
    """What passes do, and how long it takes."""

    reroutes = counter("Reroutes that were due, by reason and result.", reason=(), result=())
    transitions = counter("Plans examined, by how they may replace the routes in force.", kind=())
    check_failures = counter("Plans that failed a check and were not installed.")
    unexpected_errors = counter(
        "Unexpected errors, by the part of the agent that caught them and continued.",
        where=ERROR_PLACES,
    )
    stage_seconds = seconds("Duration of each stage of a pass.", stage=STAGES)
    stage_last_seconds = gauge("Duration of the last run of each stage.", stage=())
    last_reroute_entries_changed = gauge("Forwarding-table entries that the last reroute changed.")
    last_reroute_blocks_changed = gauge(
        "Blocks of 64 entries, one management datagram each, that the last reroute changed."
    )
    last_reroute_sl2vl_tables = gauge(
        "SL2VL tables, one for each pair of ports, that OpenSM sent to switches for the last "
        "reroute."
    )
    lft_entries_changed = counter("Forwarding-table entries that all reroutes changed together.")
    install_mode = gauge("1 if the agent installs routes, 0 if it observes.")
    rollback_hold = gauge("1 while a rollback holds the routes, else 0.")
    last_success_timestamp_seconds = gauge("Unix time at which a pass last succeeded.")
    last_pass_timestamp_seconds = gauge("Unix time at which a pass last ended.")


class EventMetrics(MetricGroup):
    """Messages about jobs, from Slurm's hooks and from processes of jobs."""

    events = counter("Accepted messages, by event and transport.", event=(), transport=())
    events_refused = counter("Refused messages, by reason.", reason=RefusalReason)
    event_delay_seconds = seconds(
        "Time from sending a message to its arrival, by the clocks of both machines."
    )
    events_waiting = gauge("Jobs reported by events since the queue was last read.")


class KeyMetrics(MetricGroup):
    """Routing keys."""

    key_leases = gauge("Routing keys that are leased to jobs.")
    key_offsets = gauge("LID offsets that OpenSM's LMC provides for routing keys.")
    key_offsets_free = gauge("LID offsets that no routing key uses anywhere.")
    keys_lost = gauge("Leased routing keys that the current fabric cannot support.")
    key_flows_max = gauge(
        "Most predicted flows on one link, of one routing key or of all keys together.",
        keys=("one", "all"),
    )
    key_installs = counter("Installs for routing keys, by result.", result=("installed", "failed"))
    key_seconds = seconds("Time from the request for a routing key until it is in force.")


class UpdateMetrics(MetricGroup):
    """How new routes replace old ones while jobs run."""

    subscribers = gauge("Processes of jobs that are subscribed to five-phase updates.")
    update_phase = gauge(
        "Phase of the five-phase update: "
        + ", ".join(f"{i} {p}" for i, p in enumerate(Phase))
        + "."
    )
    updates = counter(
        "Updates, by method and result.", method=UPDATE_METHODS, result=UPDATE_RESULTS
    )
    update_phase_seconds = seconds(
        "Duration of each phase of a five-phase update.",
        phase=[phase for phase in Phase if phase is not Phase.IDLE],
    )


class StandbyMetrics(MetricGroup):
    """The agent of a second OpenSM, if there is one."""

    standby_configured = gauge("1 if agent.peer names the machine of a second OpenSM.")
    standby = gauge("1 while this OpenSM is not the master, so that this agent installs nothing.")
    peer_copied_timestamp_seconds = gauge(
        "Unix time at which the other machine last had this agent's state; 0 for never."
    )


class Metrics(
    RouteMetrics,
    SiteMetrics,
    PassMetrics,
    EventMetrics,
    KeyMetrics,
    UpdateMetrics,
    StandbyMetrics,
    WatchMetrics,
):
    """All metrics of one agent, in a registry of their own."""

    def __init__(self, version: str, mode: str, engine: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each counter, which no query of ours reads
        super().__init__()
        ProcessCollector(registry=self.registry)
        falls = "The counts fall when jobs end: query them without rate()."
        self._job_efi = JobDistribution(
            "sar_agent_job_effective_efi_max",
            f"Running multi-switch jobs, by the largest effective EFI on their routes. {falls}",
            _COUNTS,
        )
        self._job_efi_own = JobDistribution(
            "sar_agent_job_own_routes_max",
            "Running multi-switch jobs, by the most routes of their own over one channel "
            f"(gamma_max(j) of SC16, Section 4.2.1). {falls}",
            _COUNTS,
        )
        self._job_links = JobDistribution(
            "sar_agent_job_links",
            f"Running multi-switch jobs, by the number of channels of their routes. {falls}",
            _COUNTS,
        )
        self.registry.register(self._job_efi)
        self.registry.register(self._job_efi_own)
        self.registry.register(self._job_links)
        Info(
            "sar_agent_build", "Version and configuration of the agent.", registry=self.registry
        ).info({"version": version, "mode": mode, "engine": engine})
        self.install_mode.set(mode == "install")
        self._engine = OUR_ENGINE
        self.page: WSGIApplication | None = None
        """Answers requests that are not for /metrics, where there is one."""

    def show_measures(self, which: Which, measures: Measures | None) -> None:
        """Sets the quality of routes under the running jobs; None removes the series."""
        for name in MEASURES:
            metric: Gauge = getattr(self, name)
            if measures is None:
                with suppress(KeyError):
                    metric.remove(which)
            else:
                metric.labels(which).set(getattr(measures, name))
        self._show_collectives(which, measures)
        detail = None if measures is None else measures.jobs_detail
        self._job_efi.set(which, None if detail is None else [job.efi_max for job in detail])
        self._job_efi_own.set(
            which, None if detail is None else [job.efi_own_max for job in detail]
        )
        self._job_links.set(which, None if detail is None else [job.links for job in detail])
        if measures is not None:
            self.lower_bound_effective_efi_max.set(measures.lower_bound_efi_max)
            self.lower_bound_channel_load_max.set(measures.lower_bound_load_max)

    def _show_collectives(self, which: Which, measures: Measures | None) -> None:
        """Values are computed when they are asked for."""
        for field in CollectiveMeasure._fields:
            metric: Gauge = getattr(self, f"collective_{field}")
            for word in COLLECTIVES:
                if measures is None:
                    with suppress(KeyError):
                        metric.remove(which, word)
                else:
                    metric.labels(which, word).set_function(
                        partial(_collective_value, measures, word, field)
                    )

    def show_age(self, source: str, at: float, stale: bool) -> None:
        """Sets how old a source is."""
        self.source_timestamp_seconds.labels(source).set(at)
        self.source_stale.labels(source).set(stale)

    def show_sm(self, engine: str | None, generation: int = 0, unknown_terminals: int = 0) -> None:
        """Sets what OpenSM's plugin answered; `engine` is None if it did not answer."""
        self.sm_reachable.set(engine is not None)
        if engine is None:
            return
        if self._engine != engine:
            self.engine_in_force.labels(self._engine).set(0)
        self.engine_in_force.labels(engine).set(1)
        self._engine = engine
        self.generation_in_force.set(generation)
        self.unknown_terminals.set(unknown_terminals)

    def show_keys(
        self, leased: int, lost: int, offsets: int, free: int, own: int, total: int
    ) -> None:
        """Sets the state of routing keys. `own` and `total` are the most flows on one link, of one
        key and of all keys."""
        self.key_leases.set(leased)
        self.keys_lost.set(lost)
        self.key_offsets.set(offsets)
        self.key_offsets_free.set(free)
        self.key_flows_max.labels("one").set(own)
        self.key_flows_max.labels("all").set(total)

    # What `events.counters.MessageMetrics` requires.

    def expect_messages(self, events: Iterable[str]) -> None:
        """Creates the series of these events, so that rate() sees the first message."""
        for event in events:
            self.events.labels(event, "tcp")

    def message_accepted(self, event: str, transport: str, delay: float | None) -> None:
        """Counts a message; `delay` is in seconds, None if the sender's time is not known."""
        self.events.labels(event, transport).inc()
        if delay is not None:
            self.event_delay_seconds.observe(delay)

    def message_refused(self, reason: RefusalReason) -> None:
        """Counts a refusal."""
        self.events_refused.labels(reason.value).inc()

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Records the duration of a stage, whether or not it fails."""
        start = perf_counter()
        try:
            yield
        finally:
            duration = perf_counter() - start
            self.stage_seconds.labels(stage).observe(duration)
            self.stage_last_seconds.labels(stage).set(duration)

    def serve(self, host: str, port: int) -> None:
        """Answers scrapes, and requests for the page, in threads that end with the process. Raises
        `Unavailable` if the port is in use or this machine does not have the address."""
        from prometheus_client import make_wsgi_app

        scrapes = make_wsgi_app(self.registry)

        def other(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            return (self.page or scrapes)(environ, start)

        try:
            serve_http(host, port, {"/metrics": scrapes}, other)
        except OSError as error:
            raise Unavailable(
                f"cannot serve metrics on {host}:{port} ({error.strerror}); "
                "set agent.metrics_address to a free address"
            ) from error


def _collective_value(measures: Measures, collective: str, field: str) -> float:
    return float(getattr(measures.collectives[collective], field))
