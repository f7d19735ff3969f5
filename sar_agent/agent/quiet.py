"""Whether this agent makes passes: only where its OpenSM is the master.

Of two OpenSMs one is the master, which OpenSM's own election decides. The other one's agent is
quiet: it installs nothing, and writes nothing to its state folder, where the master's agent may put
an archive (docs/ha.md). An agent whose OpenSM becomes the master begins like one that was
restarted: all its parts are built from what is on disk. It also ends like one.

While it makes passes it holds `passes.lock`, so that no archive is taken meanwhile.

**Weak spot:** `SILENT_SECONDS` must be less than the time after which the other OpenSM takes over,
which is in its opensm.conf and not known here; what then keeps two agents from installing is only
that each reaches its own OpenSM alone, and that a standby's plugin refuses loads.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from sar_agent.agent.peer import PeerStore
from sar_agent.config.model import Config
from sar_agent.config.services import load_hook, services
from sar_agent.errors import SarError
from sar_agent.install.subnet_manager import SmStatus, SubnetManager, load_subnet_manager
from sar_agent.jobs.source import job_source
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
PASSES = "passes.lock"
SILENT_SECONDS = 5.0
"""Seconds after which an OpenSM that does not answer counts as gone where there is another one. It
is less than that waits before it becomes the master (`sminfo_polling_timeout` times
`polling_retry_number`, 40 s)."""
FIRST_TABLES_SECONDS = 10.0
"""Seconds for which an OpenSM that has become the master is left to send its tables."""
PASSIVE = ("standby", "not-active")
"""Roles of an OpenSM beside a master."""


def role_of(config: Config) -> str:
    """The role of this machine's subnet manager; "not running" where it does not answer."""
    with suppress(SarError):
        return load_subnet_manager(config).status().role
    return "not running"


class QuietObserver(Protocol):
    """Something that is told why no passes are made, again and again."""

    def show(self, words: str, status: SmStatus | None) -> None:
        """`words` say it; `status` is what the subnet manager answered, None where it did not."""


class Quiet:
    """When an agent is quiet, and what it shows meanwhile."""

    def __init__(self, config: Config, metrics: Metrics) -> None:
        self.config, self.metrics = config, metrics
        self.manager: SubnetManager = load_subnet_manager(config)
        self._source, self._problems = job_source(config.slurm), ProblemLog(log)
        self._unexpected = UnexpectedErrors(metrics.unexpected_errors)
        self._observers: dict[str, QuietObserver] = {
            name: load_hook(name, service.quiet)(config, metrics)
            for name, service in services().items()
            if service.quiet
        }
        self._answered, self._polled, self._master_since = time.monotonic(), -math.inf, math.inf
        self._peer = PeerStore(config.agent.state_dir)
        metrics.standby_configured.set(bool(config.agent.peer))

    def read(self) -> SmStatus | None:
        """The subnet manager's status; None where it does not answer."""
        with suppress(SarError):
            status = self.manager.status()
            self._answered = time.monotonic()
            return status
        return None

    def must_end(self) -> bool:
        """Whether passes that are made now must end. `metrics` show what the other machine has."""
        with suppress(SarError):
            if record := self._peer.read():
                self.metrics.peer_copied_timestamp_seconds.set(record.same_at)
        status = self._unexpected.guard("status", self.read, None)
        if self.config.agent.mode != "install":
            return False
        if not self.config.agent.peer:
            return status is not None and status.role in PASSIVE
        if status is None:
            return time.monotonic() - self._answered > SILENT_SECONDS
        return status.role != "master"

    def may_begin(self, status: SmStatus | None) -> bool:
        """Whether passes may be made: this subnet manager is the master, and has sent its first
        tables or takes long. Where there is no other machine, whatever a subnet manager is that is
        not passive: it is the only one, and passes say what is wrong."""
        if self.config.agent.mode != "install":
            return True
        if not self.config.agent.peer:
            return status is None or status.role not in PASSIVE
        now = time.monotonic()
        if status is None or status.role != "master":
            self._master_since = math.inf
            return False
        self._master_since = min(self._master_since, now)
        return status.state == "built" or now - self._master_since > FIRST_TABLES_SECONDS

    def wait(self, alive: Callable[[str], None], stopped: Callable[[float], object]) -> None:
        """Show that this agent is quiet until passes may begin, or `stopped` (waits some seconds)
        says so. `alive` feeds the watchdog."""
        status = self._unexpected.guard("status", self.read, None)
        while not self.may_begin(status):
            self._show(status, alive)
            if stopped(min(self.config.opensm.poll_seconds, 0.5)):
                return
            status = self._unexpected.guard("status", self.read, None)
        self.metrics.standby.set(0)
        self.metrics.install_mode.set(self.config.agent.mode == "install")
        self._problems.problem("role", "", f"{self.manager.name} is the master: passes begin")

    def _show(self, status: SmStatus | None, alive: Callable[[str], None]) -> None:
        what = f"is {status.role}" if status else "does not answer"
        if status and status.role == "master":
            what = "has become the master, and is at work"
        words = f"{self.manager.name} {what}; this agent installs nothing"
        self._problems.problem("role", words)
        alive(words)
        for name, observer in self._observers.items():
            show = partial(observer.show, words, status)
            self._unexpected.guard(name, show, None, hook="show")
        metrics, now = self.metrics, time.time()
        if status:
            metrics.show_sm(status.engine, status.generation, status.unknown_terminals)
        else:
            metrics.show_sm(None)
        metrics.standby.set(1)
        metrics.install_mode.set(0)
        metrics.last_pass_timestamp_seconds.set(now)
        metrics.last_success_timestamp_seconds.set(now)
        metrics.fabric_read_timestamp_seconds.set(0)
        if time.monotonic() - self._polled >= self.config.agent.interval_seconds:
            self._polled = time.monotonic()
            self._unexpected.guard("look at Slurm", self._poll_slurm, None)

    def _poll_slurm(self) -> None:
        """Whether the queue can be read: that is worth an alert before this agent needs it."""
        problem = ""
        try:
            self._source.poll()
            self.metrics.slurm_read_timestamp_seconds.set(time.time())
        except SarError as error:
            problem = str(error)
        self.metrics.slurm_reachable.set(not problem)
        self._problems.problem("slurm", problem, "Slurm answers again")
