"""The agent's view of its site: Slurm's queue, topology.conf, the fabric, the subnet manager.

None of them always answers. The last good reading of each stays, with a sentence on why it could
not be read again; nothing here fails because another party is away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sar_agent.agent.current import Current
from sar_agent.agent.fabric_source import fabric_version, read_fabric
from sar_agent.agent.hints import Hints
from sar_agent.agent.last_reading import LastReading
from sar_agent.agent.source_ages import Source, SourceAge, age_of_file
from sar_agent.agent.state import StateStore
from sar_agent.config.model import Config
from sar_agent.demand.endpoints import mix_of_records, rail_note
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.by_host import ByHost
from sar_agent.fabric.stable_order import StableOrder
from sar_agent.fabric.unmatched import unmatched
from sar_agent.install.subnet_manager import InForce, SmStatus, SubnetManager
from sar_agent.jobs import JobMix
from sar_agent.jobs.filter import multi_switch
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import JobSource, TellsNodes
from sar_agent.opensm.dump_age import outdated
from sar_agent.slurm.topology_watch import TopologyWatcher
from sar_agent.util.file_versions import FileVersion
from sar_agent.util.pace import Pace
from sar_agent.util.plural import plural
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.stages import stage
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
EMPTY_SECONDS = 300.0
"""A queue that shows no job any more is not believed for so long, unless none of the jobs' nodes is
allocated: Slurm may have been asked without the right to see jobs, or have just started."""

SETTLED_SECONDS = 5.0
"""A file of the fabric that was written within so many seconds may not be whole yet."""


@dataclass(frozen=True)
class StatusReading:
    """`status` is None where the subnet manager did not answer; `problem` says why."""

    status: SmStatus | None
    problem: str = ""


@dataclass(frozen=True)
class Observation:
    """What a pass decides from."""

    fabric: Fabric
    topology_edited: bool
    status: SmStatus | None
    """None where the subnet manager did not answer; `status_problem` says why."""
    status_problem: str
    running: tuple[JobRecord, ...] = ()
    """All jobs of the poll that `records` and `mix` are from. A later one within the pass may show
    others: `SiteObserver.running`."""
    records: tuple[JobRecord, ...] = ()
    """The multi-switch jobs as Slurm's records, without hosts that are not known."""
    mix: JobMix = field(default_factory=lambda: JobMix(()))
    """The same jobs on the fabric's indices."""
    unknown_hosts: frozenset[str] = frozenset()
    in_force: InForce | None = None
    """The routes in force on the fabric's indices; None where they are not known."""
    read_from: object = None
    """Names the state of manager and fabric that `in_force` was read in, if it has a name."""


class SiteObserver:
    """Keeps the last good reading of everything. `on_edit` is called from another thread when
    topology.conf was touched, between `start` and `stop` of `topology`."""

    def __init__(
        self,
        config: Config,
        manager: SubnetManager,
        store: StateStore,
        source: JobSource,
        hints: Hints,
        unexpected: UnexpectedErrors | None = None,
        on_edit: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `unexpected`, unforeseen errors are raised."""
        self.config, self.manager, self.store = config, manager, store
        self.source, self.hints, self.unexpected = source, hints, unexpected
        self.queue: LastReading[tuple[JobRecord, ...]] = LastReading()
        self.fabric: LastReading[Fabric] = LastReading()
        self.topology = (
            TopologyWatcher(config.slurm.topology_conf, on_event=on_edit)
            if config.slurm.topology_conf
            else None
        )
        self.began = 0.0
        """When the last observation began, by `time.monotonic`."""
        self.last_status: StatusReading | None = None
        """The status that the observation of this pass saw; None before it did."""
        self.problems = ProblemLog(log)
        self._called = False
        self.planned: tuple[JobRecord, ...] = ()
        """Pending jobs with the nodes that Slurm plans for them, as far as the last look told."""
        self.dump: SmStatus | None = None
        """Status of the tables in force where a dump told them."""
        self.dump_outdated = ""
        """Why that dump may not tell them any more."""
        self._changed_after = 0.0
        """The last time when the fabric was read and was still another one; 0.0 before that."""
        self._pace = Pace()
        self._fabric_version: tuple[int, int, int] | None = None
        self._fabric_file: FileVersion | None = None
        """Of `fabric.file` when it was last read."""
        self._tables_at = 0.0
        """When the tables in force were last known, Unix seconds."""
        self._jobs_at = 0.0
        """When the queue was as it was last read, where its source is a file; else 0.0."""
        self._logged_hosts: set[str] = set()
        self._logged_rails: tuple[str, ...] = ()
        self._mix: tuple[object, JobMix] = (None, JobMix(()))
        """The last mix, and the fabric and the records that it was made of."""
        self._live: tuple[Fabric | None, ByHost[bool]] = (None, ByHost())
        """Hosts with a live terminal, and the fabric they are in: hosts get names while its digest
        stays."""
        self._order = StableOrder()

    @property
    def ages(self) -> dict[str, SourceAge]:
        """How old what is known now is, and what is too old."""
        jobs, fabric = SourceAge(self.queue.at, self.queue.stale()), self.fabric
        if self._jobs_at and not jobs.stale:
            jobs = age_of_file("jobs", self.config.slurm.jobs_file, self._jobs_at)
        network = SourceAge(fabric.at, fabric.stale())
        if self._fabric_file and not network.stale:
            file = self.config.fabric.file
            network = age_of_file("fabric", file, self._fabric_file.written_at)
        tables = SourceAge(self.dump.built_at if self.dump else self._tables_at, self.dump_outdated)
        return {"jobs": jobs, "fabric": network, "tables": tables}

    def begin_pass(self, *, called: bool = False) -> None:
        """Forget which status the pass before saw. `called`: the subnet manager waits, so the last
        reading of the queue has to do."""
        self.last_status, self._called = None, called

    def observe(self, current: Current | None = None) -> Observation:
        """Tables that nothing can have changed since `current` are not read again. Raises
        `Unavailable` only where the queue or the fabric could never be read yet."""
        self.began = time.monotonic()
        if not (self._called and self.queue.at):
            with stage("slurm"):
                self.poll_queue()
        self.problems.problem("slurm", self.queue.stale(), "Slurm answers again")
        self.last_status = reading = self.read_status()
        edited = self._topology_edited()
        if self._fabric_due(reading.status):
            self.refresh_fabric()
        self._look_at_ages()
        if self.fabric.value is None:
            raise Unavailable(f"the fabric is not known: {self.fabric.problem}")
        if self.queue.value is None:
            raise Unavailable(f"Slurm's jobs are not known: {self.queue.problem}")
        site = Observation(self.fabric.value, edited, reading.status, reading.problem)
        site, current = self._with_jobs(site), current or Current()
        # The tables in force, whichever engine made them. An answer about changed tables may be
        # newer than `read_from`: then they are only read once more.
        version = site.status.tables_version if site.status else None
        read_from = None if version is None else (version, site.fabric.digest)
        if read_from is not None and read_from == current.read_from:
            self._look_at_dump(current.in_force)
            self._tables_at = time.time()
            return replace(site, in_force=current.in_force, read_from=read_from)
        try:
            found, problem = self.manager.routes_in_force(site.fabric, wait=False), ""
        except SarError as error:
            found, read_from, problem = None, None, f"what is in force is not known: {error}"
        self.problems.problem("tables", problem)
        self._look_at_dump(found)
        self._tables_at = time.time() if found else self._tables_at
        return replace(site, in_force=found, read_from=read_from)

    def observe_fabric_again(self, site: Observation) -> Observation | None:
        """`site` on the fabric as it is now, without the routes in force; None where the fabric
        cannot be read, or has not changed."""
        self.refresh_fabric()
        fabric = self.fabric.value
        if fabric is None or fabric.digest == site.fabric.digest:
            return None
        return self._with_jobs(replace(site, fabric=fabric, in_force=None))

    def _with_jobs(self, site: Observation) -> Observation:
        """With the multi-switch jobs, decided once: by the leaf switches of its live ports,
        among the jobs that topology.conf, where there is one, does not put on a single leaf switch.
        Hosts that either does not know are left out, and logged once."""
        records: Collection[JobRecord]
        records = running = self.running()
        if hints := self.config.slurm.partition_hints:
            records = [
                record if record.traffic else record._replace(traffic=hints.get(record.partition))
                for record in records
            ]
        unknown: frozenset[str] = frozenset()
        if self.topology and self.topology.topology:
            by_slurm = multi_switch(records, self.topology.topology.leaf_of)
            records, unknown = by_slurm.jobs, by_slurm.unknown_hosts
        gone = self._live_hosts(site.fabric).without(record.hosts for record in records)
        made_of = site.fabric, tuple(records)
        if self._mix[0] != made_of:
            self._mix = made_of, mix_of_records(site.fabric, records).mix
            rails = rail_note(site.fabric, self._mix[1])
            if rails and rails not in self._logged_rails:
                self._logged_rails = (*self._logged_rails[-8:], rails)
                log.info("%s", rails)
        mix = self._mix[1]
        ids = {job.id for job in mix.jobs}
        kept = tuple(
            record
            if gone.isdisjoint(record.hosts)
            else record._replace(hosts=tuple(host for host in record.hosts if host not in gone))
            for record in records
            if record.id in ids
        )
        unknown |= gone
        if new := sorted(unknown - self._logged_hosts):
            self._logged_hosts.update(new)
            shown = ", ".join(new[:10]) + (" …" if len(new) > 10 else "")
            log.warning("hosts of jobs that are not in the fabric or topology.conf: %s", shown)
        return replace(site, running=running, records=kept, mix=mix, unknown_hosts=unknown)

    def running(self) -> tuple[JobRecord, ...]:
        """All jobs of the last good poll, with the hints of their users."""
        return self.hints.apply(self.queue.value or ())

    def poll_queue(self) -> bool:
        """Read the queue now; False, with the last reading kept, where that fails."""
        return self.queue.read(self._poll, "look at Slurm", self.unexpected)

    def owners_now(self) -> dict[str, int | None] | None:
        """Owners of the running jobs, from a new poll; None where the queue cannot be read."""
        return owners(self.queue.value or ()) if self.poll_queue() else None

    def read_status(self) -> StatusReading:
        """What the subnet manager reports, or why it does not."""
        try:
            return StatusReading(self.manager.status())
        except SarError as error:
            return StatusReading(None, str(error))

    def refresh_fabric(self) -> bool:
        """Read the fabric now; False if that failed."""
        before, read_at = self.fabric.value, self.fabric.at
        with stage("fabric"):
            good = self.fabric.read(self._read_fabric, "look at the fabric", self.unexpected)
        after = self.fabric.value
        if before is not None and after is not None and before.digest != after.digest:
            self._changed_after = read_at
        if after is not None and (before is None or before.digest != after.digest):
            odd = unmatched(after, self.config.fabric.mapper)
            self.problems.problem("names", "; ".join(f"fabric.{each.key} {each}" for each in odd))
        self._pace.put_off("fabric", self.config.fabric.refresh_seconds)
        self.problems.problem("fabric", self.fabric.stale(), "the fabric can be read again")
        return good

    def _look_at_ages(self) -> None:
        """Says what is too old. A source that cannot be read is said elsewhere."""
        ages = self.ages
        failing: tuple[tuple[Source, str], ...] = (
            ("jobs", self.queue.problem),
            ("fabric", self.fabric.problem),
        )
        for source, fails in failing:
            stale = "" if fails else ages[source].stale
            self.problems.problem(f"{source} age", stale, f"the file of the {source} is new again")

    def _look_at_dump(self, found: InForce | None) -> None:
        """Where a dump told the tables: whether it still can."""
        status = found.status if found and found.status.dump else None
        self.dump, self.dump_outdated = status, ""
        if status:
            self.dump_outdated = outdated(
                status.dump, status.built_at, self._changed_after, ours=status.ours
            )
        self.problems.problem("dump", self.dump_outdated, "the dump of the tables is new again")

    def _read_fabric(self) -> Fabric:
        if self.config.fabric_from_plugin:
            found = self.manager.fabric()
        else:
            version = fabric_version(self.config.fabric)
            found = read_fabric(self.config.fabric)
            self._fabric_file = version
        if not found.terminals:
            raise Unavailable(f"{found.name}: the fabric has no hosts")
        return self._order.of(found)

    def _poll(self) -> tuple[JobRecord, ...]:
        self.planned = ()
        poll = self.source.poll()
        skipped = (
            f"{plural(poll.skipped, 'entry', 'entries')} of the queue "
            f"{'is no job' if poll.skipped == 1 else 'are no jobs'}, the first: "
            f"{poll.first_skipped}"
        )
        self.problems.problem("squeue lines", skipped if poll.skipped else "")
        if not poll.records and (hosts := self._hosts_before()):
            self._doubt_empty(hosts)
        self._pace.forget("empty queue")
        self.planned, self._jobs_at = poll.planned, poll.at
        return poll.records

    def _hosts_before(self) -> frozenset[str]:
        """Nodes of the jobs of the last good poll; before the first, of those that an agent before
        has planned for."""
        if self.queue.value is not None:
            return frozenset(host for record in self.queue.value for host in record.hosts)
        with suppress(SarError):
            if state := self.store.load():
                return frozenset().union(*state.jobs)
        return frozenset()

    def _doubt_empty(self, hosts: frozenset[str]) -> None:
        """Raises `Unavailable` where a queue that shows no job any more is not to be believed."""
        if "empty queue" not in self._pace:
            self._pace.put_off("empty queue", EMPTY_SECONDS)
        if not (left := self._pace.left("empty queue")):
            return
        why = "its source cannot say whether their nodes are allocated"
        if isinstance(self.source, TellsNodes):
            try:
                found = sorted(self.source.allocated(hosts))
            except Unavailable as error:
                why = str(error)
            else:
                if not found:
                    return
                more = f" and {len(found) - 3} more" * (len(found) > 3)
                why = f"{', '.join(found[:3])}{more} are allocated"
        raise Unavailable(
            f"the queue shows no job any more, but {why}; it is believed after {left:.0f} s more"
        )

    def _fabric_due(self, status: SmStatus | None) -> bool:
        version = status.fabric_version if status else None
        moved = version is not None and version != self._fabric_version
        self._fabric_version = version or self._fabric_version
        return (
            self.fabric.value is None
            or bool(self.fabric.problem)
            or moved
            or bool(status and status.unknown_terminals)
            or self._file_is_new()
            or self._pace.due("fabric")
        )

    def _file_is_new(self) -> bool:
        """Whether `fabric.file` was written since it was read, and not just now: then somebody may
        be writing it still."""
        if self.config.fabric_from_plugin:
            return False
        found = fabric_version(self.config.fabric)
        settled = found is not None and time.time() - found.written_at > SETTLED_SECONDS
        return settled and found != self._fabric_file

    def _topology_edited(self) -> bool:
        if self.topology is None:
            return False
        try:
            edited = self.topology.changed()
        except Exception as error:
            if self.unexpected is None:
                raise
            self.unexpected.caught("look at the topology", error)
            return False
        rest = "" if self.topology.topology else "; leaf switches are taken from the fabric"
        problem = self.topology.problem and f"topology.conf: {self.topology.problem}{rest}"
        self.problems.problem("topology", problem, "topology.conf is fine again")
        return edited

    def _live_hosts(self, fabric: Fabric) -> ByHost[bool]:
        if self._live[0] is not fabric:
            hosts = zip(fabric.terminal_host, fabric.terminal_up.tolist(), strict=True)
            self._live = fabric, ByHost({host: up for host, up in hosts if up})
        return self._live[1]


def owners(records: Collection[JobRecord]) -> dict[str, int | None]:
    """Owners of jobs, by the numbers that Slurm's hooks call the jobs by."""
    return {number: record.uid for record in records for number in record.numbers}
