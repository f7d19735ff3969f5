"""The agent's eyes: Slurm's queue, topology.conf, the fabric, OpenSM's plugin.

None of them is always there. What was read last stays, with a sentence on why it could not be read
again; nobody here raises because an outside party is away.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from sar_agent.agent.hints import Hints
from sar_agent.config.model import Config, FabricConfig
from sar_agent.errors import SarError, Unavailable
from sar_agent.events.authority import trusted_uids
from sar_agent.fabric import Fabric
from sar_agent.fabric.cache import cached_fabric
from sar_agent.fabric.spec import parse_fabric
from sar_agent.jobs.filter import multi_switch
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import JobSource, job_source
from sar_agent.opensm.discovered_fabric import DiscoveredFabric
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_install import Timed
from sar_agent.slurm.topology_watch import TopologyWatcher
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.programs import run_program
from sar_agent.util.text_files import read_text
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
_T = TypeVar("_T")
MOST = 256 * 2**20
"""Bytes that ibnetdiscover may print; a fabric of 11,664 hosts is 10 MB."""


@dataclass
class LastReading(Generic[_T]):
    """A last good reading: `at` in Unix seconds, `since` by `time.monotonic`; `problem` says why it
    could not be read again."""

    value: _T | None = None
    at: float = 0.0
    since: float = 0.0
    problem: str = ""

    def read(
        self,
        source: Callable[[], _T],
        where: str = "",
        unexpected: UnexpectedErrors | None = None,
    ) -> bool:
        """Read again; False, with the old value kept, where that fails. What nobody foresaw goes to
        `unexpected`, if there is one, as an error at `where`: the old value does for a repair."""
        try:
            self.value = source()
        except SarError as error:
            self.problem = str(error)
            return False
        except Exception as error:
            if unexpected is None:
                raise
            self.problem = unexpected.caught(where, error)
            return False
        self.at, self.since, self.problem = time.time(), time.monotonic(), ""
        return True

    def stale(self) -> str:
        """`problem`, and how old what is used instead is; empty where it is fresh."""
        if not self.problem:
            return ""
        age = time.monotonic() - self.since
        return self.problem + (f"; going on with what was read {age:.0f} s ago" if self.at else "")


@dataclass(frozen=True)
class Used:
    """`status` is None where OpenSM's plugin did not answer."""

    status: PluginStatus | None


@dataclass(frozen=True)
class Observation:
    """One look around. `records` are the multi-switch jobs, all hosts known."""

    fabric: Fabric
    records: tuple[JobRecord, ...]
    unknown_hosts: frozenset[str]
    topology_edited: bool
    status: PluginStatus | None
    status_problem: str


class Gatherer:
    """Keeps the last good reading of everything. `wake` is called from another thread when
    topology.conf was touched; `start` and `stop` begin and end that."""

    def __init__(
        self,
        config: Config,
        bridge: PluginClient,
        wake: Callable[[], None] = lambda: None,
        source: JobSource | None = None,
    ) -> None:
        self.config, self.bridge = config, bridge
        slurm = config.slurm
        self.source = source or job_source(slurm)
        self.hints = Hints(config.agent.state_dir, trusted_uids(config.events.trusted_users))
        self.queue: LastReading[tuple[JobRecord, ...]] = LastReading()
        self.looked_at = 0.0
        """When the last look at the queue began, by `time.monotonic`."""
        self.used: Used | None = None
        """What the last look saw of OpenSM; who wants to know whether there was one clears it."""
        self.fabric: LastReading[Fabric] = LastReading()
        self._discovered = DiscoveredFabric(bridge, config.fabric.mapper)
        self.topology = (
            TopologyWatcher(slurm.topology_conf, on_event=wake) if slurm.topology_conf else None
        )
        self.say = ProblemLog(log)
        self.unexpected: UnexpectedErrors | None = None
        """Whom to tell of errors that nobody foresaw; without, they are raised."""
        self._fabric_tried = 0.0
        """By `time.monotonic`, which no step of the wall clock moves."""
        self._swept: tuple[int, ...] | None = None
        self._logged_hosts: set[str] = set()
        self._leaves: tuple[bytes, dict[str, set[int]]] = (b"", {})

    def look(self, timed: Timed = nullcontext) -> Observation:
        """Raises `Unavailable` only where the queue or the fabric could never be read yet."""
        self.looked_at = time.monotonic()
        with timed("slurm"):
            self.poll_now()
        self.say.problem("slurm", self.queue.stale(), "Slurm answers again")
        status, problem = self.status()
        self.used = Used(status)
        edited = self._topology_edited()
        if self._fabric_due(status):
            self.refresh_fabric(timed)
        if self.fabric.value is None:
            raise Unavailable(f"the fabric is not known: {self.fabric.problem}")
        if self.queue.value is None:
            raise Unavailable(f"Slurm's jobs are not known: {self.queue.problem}")
        records, unknown = self.jobs(self.fabric.value)
        return Observation(self.fabric.value, records, unknown, edited, status, problem)

    def jobs(self, fabric: Fabric) -> tuple[tuple[JobRecord, ...], frozenset[str]]:
        """The multi-switch jobs by topology.conf, where there is one, and by the fabric; and the
        hosts that either does not know, each of them logged once."""
        records: Collection[JobRecord] = self.running()
        if hints := self.config.slurm.partition_hints:
            records = [
                record if record.traffic else replace(record, traffic=hints.get(record.partition))
                for record in records
            ]
        unknown: frozenset[str] = frozenset()
        if self.topology and self.topology.topology:
            kept = multi_switch(records, self.topology.topology.leaf_of)
            records, unknown = kept.jobs, kept.unknown_hosts
        kept = multi_switch(records, self._leaf_of(fabric))
        unknown |= kept.unknown_hosts
        if new := sorted(unknown - self._logged_hosts):
            self._logged_hosts.update(new)
            shown = ", ".join(new[:10]) + (" …" if len(new) > 10 else "")
            log.warning("hosts of jobs that nobody knows, left out: %s", shown)
        return kept.jobs, unknown

    def ask_queue(self) -> tuple[JobRecord, ...] | None:
        """The queue now, out of turn; None where it cannot be read."""
        return self.queue.value if self.poll_now() else None

    def running(self) -> tuple[JobRecord, ...]:
        """All jobs of the last good poll, with what users said of them."""
        return self.hints.apply(self.queue.value or ())

    def poll_now(self) -> bool:
        """Ask for the queue alone, where somebody knows more than the last look; False, with what
        was read before, where that fails."""
        return self.queue.read(self._poll, "look at Slurm", self.unexpected)

    def status(self) -> tuple[PluginStatus | None, str]:
        """What OpenSM's plugin says, or why it says nothing."""
        try:
            if not self.bridge.socket_path.exists():  # no need to ask four times
                raise Unavailable(
                    f"{self.bridge.socket_path}: OpenSM's plugin is not there (no such socket)"
                )
            return self.bridge.status(), ""
        except SarError as error:
            return None, str(error)

    def refresh_fabric(self, timed: Timed) -> bool:
        """Read the fabric now; False if that failed."""
        with timed("fabric"):
            good = self.fabric.read(self._read_fabric, "look at the fabric", self.unexpected)
        self._fabric_tried = time.monotonic()
        self.say.problem("fabric", self.fabric.stale(), "the fabric can be read again")
        return good

    def _read_fabric(self) -> Fabric:
        if self.config.fabric_from_plugin:
            return self._discovered.read()
        return read_fabric(self.config.fabric, self.config.agent.state_dir / "fabric.npz")

    def _poll(self) -> tuple[JobRecord, ...]:
        poll = self.source.poll()
        many = f"{poll.skipped} entries of the queue are no jobs, the first: {poll.first_skipped}"
        self.say.problem("squeue lines", many if poll.skipped else "")
        return poll.records

    def _fabric_due(self, status: PluginStatus | None) -> bool:
        swept = status and (status.pid, status.heavy_sweeps, status.topology_changes)
        moved = swept is not None and swept != self._swept
        self._swept = swept or self._swept
        return (
            self.fabric.value is None
            or bool(self.fabric.problem)
            or moved
            or bool(status and status.unknown_terminals)
            or time.monotonic() - self._fabric_tried >= self.config.fabric.refresh_seconds
        )

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
        self.say.problem("topology", problem, "topology.conf is fine again")
        return edited

    def _leaf_of(self, fabric: Fabric) -> dict[str, set[int]]:
        if self._leaves[0] != fabric.digest:
            leaves: dict[str, set[int]] = {host: set() for host in fabric.hosts}
            for host, leaf, up in zip(
                fabric.terminal_host,
                fabric.terminal_switch.tolist(),
                fabric.terminal_up.tolist(),
                strict=True,
            ):
                if up:
                    leaves[host].add(leaf)
            self._leaves = fabric.digest, leaves
        return self._leaves[1]


def read_fabric(config: FabricConfig, cache: Path) -> Fabric:
    """The fabric as it is now; `cache` is a file for it. Raises `SarError` where command or file
    fail."""
    if config.file:
        name, text = config.file, read_text(Path(config.file)) + "\n"
    else:
        name = config.command[0]
        text = _run(tuple(config.command), config.deadline_seconds, config.environment) + "\n"
    return cached_fabric(
        cache, text, config.mapper, lambda: parse_fabric(text, name, config.mapper)
    )


@retry(
    retry=retry_if_exception_type(Unavailable),
    stop=stop_after_attempt(2),
    wait=wait_fixed(0.5),
    reraise=True,
)
def _run(command: tuple[str, ...], deadline: float, environment: dict[str, str]) -> str:
    with _folder_of_its_own() as folder:
        return run_program(
            command,
            deadline=deadline,
            most=MOST,
            remedy="install infiniband-diags or set fabric.command or fabric.file",
            environment=os.environ | environment,
            folder=folder,
        )


@contextmanager
def _folder_of_its_own() -> Iterator[Path]:
    """Under a simulator the tools leave files where they run. Where /tmp takes no folder it is `/`:
    ibnetdiscover itself needs none, and a full disk is no reason not to see the fabric."""
    with ExitStack() as stack:
        folder = Path("/")
        with suppress(OSError):
            made = tempfile.TemporaryDirectory(prefix="sar-agent-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
        yield folder
