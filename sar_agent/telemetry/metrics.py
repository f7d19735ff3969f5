"""Every number that Prometheus can scrape from the agent, declared once.

A scrape reads memory only: the loop sets the values, `collect` copies them. Units are base units.
No label holds a job's id, a user or a host, so the number of series does not grow with the site.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from sar_agent.errors import Unavailable
from sar_agent.quality.measures import Measures

Which = Literal["in_force", "planned"]
OURS = "sar"
"""Our plugin's name among OpenSM's routing engines."""
REFUSALS = (
    "garbage",
    "oversize",
    "slow",
    "credential",
    "replayed",
    "not_allowed",
    "not_owner",
    "full",
    "too_many",
    "too_often",
    "no_munge",
)
"""Why a message of Slurm's hooks was not taken."""
PLACES = (
    *("pass", "keys", "status", "events", "waiting", "door", "spool"),
    *("look at Slurm", "look at the fabric", "look at the topology"),
)
"""Where errors that nobody foresaw are caught."""
STAGES = (
    "slurm",
    "fabric",
    "route",
    "check",
    "measure",
    "transition",
    "write",
    "load",
    "read_back",
)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_EFI = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_LINKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


class JobDistribution(Collector):
    """The jobs that run *now*, by a value each, as a histogram. Unlike an event histogram it goes
    up and down, so ask it without rate(): histogram_quantile(0.5, sar_job_links_bucket)."""

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:
        self._name, self._help, self._bounds = name, help, bounds
        self._values: dict[str, list[float]] = {}
        self._lock = threading.Lock()

    def set(self, routes: str, values: Iterable[float] | None) -> None:
        """The jobs' values under `routes`; None takes the series away."""
        with self._lock:
            self._values.pop(routes, None)
            if values is not None:
                self._values[routes] = sorted(values)

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """What registering asks for."""
        return [HistogramMetricFamily(self._name, self._help, labels=["routes"])]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """prometheus_client's call, from a scrape's thread."""
        family = HistogramMetricFamily(self._name, self._help, labels=["routes"])
        with self._lock:
            for routes, values in sorted(self._values.items()):
                cumulative = [
                    (str(float(b)), float(sum(v <= b for v in values))) for b in self._bounds
                ]
                buckets = [*cumulative, ("+Inf", float(len(values)))]
                family.add_metric([routes], buckets, sum_value=sum(values))
        return [family]


class Metrics:
    """All metrics, in a registry of their own."""

    def __init__(self, version: str, mode: str, engine: str) -> None:
        self.registry = CollectorRegistry()

        def gauge(name: str, help: str, *labels: str) -> Gauge:
            return Gauge(f"sar_{name}", help, labels, registry=self.registry)

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"sar_{name}", help, labels, registry=self.registry)

        self._of_routes = {
            "dark_fiber_ratio": gauge(
                "dark_fiber_ratio",
                "Share of live channels between switches that no running job's route uses.",
                "routes",
            ),
            "effective_efi_max": gauge(
                "effective_efi_max",
                "Largest effective edge forwarding index: routes inside jobs over one channel.",
                "routes",
            ),
            "effective_efi_mean": gauge(
                "effective_efi_mean",
                "Mean effective edge forwarding index over all live channels.",
                "routes",
            ),
            "load_max": gauge(
                "channel_load_max",
                "Largest load of a channel while every job does all-to-all at once; 1 is full.",
                "routes",
            ),
            "throughput_mean": gauge(
                "job_throughput_mean_ratio",
                "Mean share of full speed that jobs get while every job does all-to-all at once.",
                "routes",
            ),
            "throughput_min": gauge(
                "job_throughput_min_ratio",
                "The worst job's share of full speed while every job does all-to-all at once.",
                "routes",
            ),
        }
        self._job_efi = JobDistribution(
            "sar_job_effective_efi_max",
            "Multi-switch jobs running now, by the largest effective EFI on their routes.",
            _EFI,
        )
        self._job_links = JobDistribution(
            "sar_job_links",
            "Multi-switch jobs running now, by the number of channels they use.",
            _LINKS,
        )
        for one in (self._job_efi, self._job_links):
            self.registry.register(one)
        self.bound_efi = gauge(
            "lower_bound_effective_efi_max",
            "No routing can bring the largest effective EFI of the running jobs below this.",
        )
        self.bound_load = gauge(
            "lower_bound_channel_load_max",
            "No routing can bring the largest channel load of the running jobs below this.",
        )
        self.jobs = gauge("multi_switch_jobs", "Running jobs on at least two leaf switches.")
        self.unknown_hosts = gauge(
            "unknown_hosts", "Hosts of running jobs that topology.conf or the fabric do not know."
        )
        self.switches = gauge("fabric_switches", "Switches in the fabric as last read.")
        self.terminals = gauge("fabric_terminals", "HCA ports in the fabric as last read.")
        self.channels = gauge(
            "fabric_channels", "Live directed channels between switches in the fabric as last read."
        )
        self.reroutes = counter(
            "reroutes", "Reroutes that were called for, by reason and result.", "reason", "result"
        )
        self.transitions = counter(
            "transitions",
            "Plans held against the routes in force, by the way that leads there.",
            "way",
        )
        self.check_failures = counter(
            "check_failures", "Plans that failed a check and were not installed."
        )
        self.unexpected_errors = counter(
            "unexpected_errors", "Errors that nobody foresaw; the agent went on.", "where"
        )
        for where in PLACES:
            self.unexpected_errors.labels(where)
        self.stage_seconds = Histogram(
            "sar_stage_seconds",
            "How long each stage of a pass took.",
            ["stage"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.stage_last = gauge("stage_last_seconds", "How long each stage took last.", "stage")
        for stage in STAGES:
            self.stage_seconds.labels(stage)
        self.entries_changed = gauge(
            "entries_changed", "Forwarding-table entries that the last reroute changed."
        )
        self.blocks_changed = gauge(
            "blocks_changed",
            "Blocks of 64 entries, a datagram each, that the last reroute changed.",
        )
        self.entries_changed_sum = counter(
            "entries_changed_all", "Forwarding-table entries that all reroutes together changed."
        )
        self.generation_wanted = gauge(
            "generation_wanted", "Generation of the routes that the agent last installed."
        )
        self.generation_in_force = gauge(
            "generation_in_force", "Generation that OpenSM has in force; 0 if it is not ours."
        )
        self.engine_in_force = gauge(
            "engine_in_force", "1 for the routing engine that OpenSM has in force.", "engine"
        )
        self.install_mode = gauge("install_mode", "1 if the agent installs, 0 if it observes.")
        self.held = gauge("held", "1 while a person's rollback holds the routes.")
        self.last_success = gauge(
            "last_success_timestamp_seconds", "When a pass last ended as it should, Unix time."
        )
        self.last_pass = gauge(
            "last_pass_timestamp_seconds", "When a pass last ended, in Unix time."
        )
        self.slurm_reachable = gauge("slurm_reachable", "1 if the last look at the queue was good.")
        self.slurm_read = gauge(
            "slurm_read_timestamp_seconds", "When the queue was last read, Unix time."
        )
        self.fabric_read = gauge(
            "fabric_read_timestamp_seconds", "When the fabric was last read, Unix time."
        )
        self.sm_reachable = gauge("sm_reachable", "1 if OpenSM's plugin answered when last asked.")
        self.unknown_terminals = gauge(
            "unknown_terminals", "Live HCA ports that the routes in force do not know."
        )
        self.events = counter(
            "events", "Messages of Slurm's hooks that were believed.", "event", "way"
        )
        self.events_refused = counter(
            "events_refused", "Messages of Slurm's hooks that were not taken, by reason.", "why"
        )
        for why in REFUSALS:
            self.events_refused.labels(why)
        for event in ("start", "end", "hint", "subscribe", "ack", "unsubscribe", "key", "key-done"):
            self.events.labels(event, "tcp")
        self.event_delay = Histogram(
            "sar_event_delay_seconds",
            "Time from a hook's message to the agent, by the clocks of both.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.events_waiting = gauge(
            "events_waiting", "Jobs that were told of since the last look at the queue."
        )
        self.key_leases = gauge("key_leases", "Routing keys that are leased to jobs.")
        self.key_offsets = gauge(
            "key_offsets", "LID offsets for routing keys that OpenSM's LMC gives."
        )
        self.key_offsets_free = gauge(
            "key_offsets_free", "LID offsets for routing keys that no job has anywhere."
        )
        self.keys_lost = gauge(
            "keys_lost", "Leased routing keys that the fabric as it is cannot hold."
        )
        self.key_flows = gauge(
            "key_flows_max",
            "Most flows of routing keys predicted on one link: of one key, or of all together.",
            "of",
        )
        for of in ("own", "total"):
            self.key_flows.labels(of)
        self.key_installs = counter(
            "key_installs", "Installs for routing keys, by how they ended.", "result"
        )
        for result in ("installed", "failed"):
            self.key_installs.labels(result)
        self.key_seconds = Histogram(
            "sar_key_seconds",
            "Time from a request for a routing key until it is in force.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.subscribers = gauge(
            "subscribers", "Processes of jobs that have subscribed to updates in phases."
        )
        self.update_phase = gauge(
            "update_phase", "Phase of the update: 0 idle, 1 unpath, 2 install, 3 repath."
        )
        self.updates = counter(
            "updates", "Ways in which plans came into force, and how it ended.", "how", "result"
        )
        for how in ("direct", "five-phase"):
            self.updates.labels(how, "installed")
        self.update_phase_seconds = Histogram(
            "sar_update_phase_seconds",
            "How long each phase of an update in phases took.",
            ["phase"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        for phase in ("unpath", "install", "repath"):
            self.update_phase_seconds.labels(phase)
        Info("sar_build", "What this is.", registry=self.registry).info(
            {"version": version, "mode": mode, "engine": engine}
        )
        self.install_mode.set(mode == "install")
        self.engine_in_force.labels(OURS).set(0)
        self._engine = OURS

    def show_measures(self, which: Which, measures: Measures | None) -> None:
        """What routes are worth under the running jobs; None takes the series away."""
        for name, one in self._of_routes.items():
            if measures is not None:
                one.labels(which).set(getattr(measures, name))
            else:
                with suppress(KeyError):
                    one.remove(which)
        detail = None if measures is None else measures.jobs_detail
        self._job_efi.set(which, None if detail is None else [job.efi_max for job in detail])
        self._job_links.set(which, None if detail is None else [job.links for job in detail])
        if measures is not None:
            self.bound_efi.set(measures.lower_bound_efi_max)
            self.bound_load.set(measures.lower_bound_load_max)

    def show_sm(self, engine: str | None, generation: int = 0, unknown_terminals: int = 0) -> None:
        """What OpenSM's plugin said; `engine` is None where it did not answer."""
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
        """The routing keys in force; `own` and `total` are flows over one link."""
        self.key_leases.set(leased)
        self.keys_lost.set(lost)
        self.key_offsets.set(offsets)
        self.key_offsets_free.set(free)
        self.key_flows.labels("own").set(own)
        self.key_flows.labels("total").set(total)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Time of a stage, also when it fails."""
        start = perf_counter()
        try:
            yield
        finally:
            seconds = perf_counter() - start
            self.stage_seconds.labels(stage).observe(seconds)
            self.stage_last.labels(stage).set(seconds)

    def serve(self, host: str, port: int) -> None:
        """Answer scrapes from a thread that ends with the process; `Unavailable` if the port is
        in use or the address is not ours."""
        from prometheus_client import start_http_server

        try:
            start_http_server(port, host, self.registry)
        except OSError as error:
            raise Unavailable(
                f"cannot serve metrics on {host}:{port} ({error.strerror}); "
                "set agent.metrics_address to a free one"
            ) from error
