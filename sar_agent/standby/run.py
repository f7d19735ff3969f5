"""`run` with a second agent: passes while the own OpenSM is the master, copies while it is not.

An agent that takes over begins like one that was restarted: all its parts are built from what is on
disk, so nothing that it knew in an earlier term remains. It also ends like one: when its OpenSM is
not the master any more, or does not answer, the passes end, and nobody can subscribe.

**Weak spot:** `SILENT_SECONDS` must be less than the time after which the other OpenSM takes over,
which is in its opensm.conf and not known here; what then keeps two agents from installing is only
that each reaches its own OpenSM alone, and that a standby's plugin refuses loads.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sar_agent import __version__
from sar_agent.agent.daemon import run_passes
from sar_agent.agent.waiting import DaemonSignals
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.install.subnet_manager import SmStatus, SubnetManager, load_subnet_manager
from sar_agent.jobs.source import job_source
from sar_agent.live_page import LivePages, PageSnapshot, Trouble
from sar_agent.live_page.web_app import WebApp
from sar_agent.standby.peer_link import PeerLink
from sar_agent.standby.peer_server import PeerServer
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.lock_file import ANOTHER, Lock
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.systemd import Notifier
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
SILENT_SECONDS = 5.0
"""Seconds after which an OpenSM that does not answer counts as gone. It is less than another OpenSM
waits before it becomes the master (`sminfo_polling_timeout` times `polling_retry_number`, 40 s)."""
FIRST_TABLES_SECONDS = 10.0
"""Seconds for which an OpenSM that has become the master is left to send its tables."""


class StandbyDaemon:
    """One agent of two. Raises `SarError` where it cannot start."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.metrics = Metrics(__version__, config.agent.mode, config.agent.engine)
        self.unexpected = UnexpectedErrors(self.metrics.unexpected_errors)
        self.signals, self.notifier, self.pages = DaemonSignals(), Notifier(), LivePages()
        self._page = WebApp(self.pages, config.agent.page)
        self._manager, self._source = load_subnet_manager(config), job_source(config.slurm)
        self._status: SmStatus | None = None
        """The own subnet manager's status when it was last asked; None where it did not answer."""
        self._answered = time.monotonic()
        self._master = False
        self._passes: DaemonSignals | None = None
        """Of the passes under way, while this OpenSM is the master."""
        self._polled, self._master_since = -math.inf, math.inf
        self._refused = self._heard = 0
        self._problems = ProblemLog(log)
        self.link = PeerLink(config, lambda: self._master, lambda: self._status)
        self.server = PeerServer(self.link)

    def run(self) -> None:
        """Returns after SIGTERM or SIGINT."""
        stop, threads = self.signals.stop, []
        self.metrics.standby_configured.set(1)
        if address := self.config.agent.metrics_host_port:
            self.metrics.serve(*address)
        self.signals.listen(self._end_passes)
        self.server.start()
        try:
            self._exchange()
            self._ask()
            self.notifier.ready()
            for work, seconds in (
                (self._exchange, self.config.standby.interval_seconds),
                (self._ask, min(self.config.opensm.poll_seconds, 1.0)),
            ):
                threads.append(threading.Thread(target=self._repeat, args=(work, seconds)))
                threads[-1].daemon = True
                threads[-1].start()
            while not stop.is_set():
                status = self._status
                if status and self._may_lead(status):
                    self._lead(status)
                else:
                    self._stand_by(status)
        finally:
            stop.set()
            self.notifier.stopping()
            self.server.stop()
            for thread in threads:
                thread.join(SILENT_SECONDS)
            self.link.client.close()

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        while not self.signals.stop.wait(seconds):
            work()

    def _exchange(self) -> None:
        self.unexpected.guard("peer", self.link.exchange, False)
        self._end_lost()
        self.unexpected.guard("peer", self._set_metrics, None, part=True)

    def _ask(self) -> None:
        self._status = self.unexpected.guard("status", self._read_status, None)
        if self._status is not None:
            self._answered = time.monotonic()
        self._end_lost()

    def _read_status(self) -> SmStatus | None:
        with suppress(SarError):
            return self._manager.status()
        return None

    def _end_lost(self) -> None:
        """End the passes where the own OpenSM is no master any more, or has been silent."""
        status, silent = self._status, time.monotonic() - self._answered > SILENT_SECONDS
        if silent or (status is not None and status.role != "master"):
            self._end_passes()

    def _end_passes(self) -> None:
        if passes := self._passes:
            passes.stop.set()
            passes.wake.set()

    def _may_lead(self, status: SmStatus) -> bool:
        """Whether this OpenSM is the master, and has sent its first tables or takes long."""
        now = time.monotonic()
        if status.role != "master":
            self._master_since = math.inf
            return False
        self._master_since = min(self._master_since, now)
        return status.state == "built" or now - self._master_since > FIRST_TABLES_SECONDS

    def _lead(self, status: SmStatus) -> None:
        """Passes until this OpenSM is not the master any more."""
        term = "not saved"
        with self.link.lock:  # nothing is copied from here on
            try:
                term = str(self.link.take_over().term)
            except SarError as error:
                log.warning("%s; this agent goes on without a term of its own", error)
            self._master = True
        log.info(
            "%s is the master: this agent installs from now on (term %s, generation %d in force)",
            self._manager.name,
            term,
            status.generation,
        )
        self._set_metrics()
        self._passes = passes = DaemonSignals(self.signals.wake)
        self._end_lost()
        if self.signals.stop.is_set():
            passes.stop.set()
        manager = load_subnet_manager(self.config)
        number_above(manager, self._highest)
        try:
            run_passes(self.config, passes, self.notifier, manager, self.metrics)
        finally:
            self._passes = None
            with self.link.lock:
                self._master = False
        if not self.signals.stop.is_set():
            log.info(
                "%s is no longer the master, or does not answer: this agent copies the state of "
                "the other one",
                self._manager.name,
            )

    def _highest(self) -> int:
        with suppress(SarError):
            self._heard = self.link.terms.load().highest
        return self._heard

    def _stand_by(self, status: SmStatus | None) -> None:
        """Look whether this agent could take over, then wait a little."""
        what = f"is {status.role}" if status else "does not answer"
        if status and status.role == "master":
            what = "has become the master, and is at work"
        words = f"{self._manager.name} {what}; this agent installs nothing"
        self._problems.problem("role", words)
        self.notifier.alive(words)
        self.pages.show(self._standby_page(words, status))
        self.metrics.page = self._page
        now = time.time()
        if status:
            self.metrics.show_sm(status.engine, status.generation, status.unknown_terminals)
        else:
            self.metrics.show_sm(None)
        self.metrics.last_pass_timestamp_seconds.set(now)
        self.metrics.last_success_timestamp_seconds.set(now)
        if time.monotonic() - self._polled >= self.config.agent.interval_seconds:
            self._polled = time.monotonic()
            self.unexpected.guard("look at Slurm", self._poll_slurm, None)
        self.signals.wake.wait(min(self.config.opensm.poll_seconds, 0.5))
        self.signals.wake.clear()

    def _standby_page(self, words: str, status: SmStatus | None) -> PageSnapshot:
        """What the page of an agent that only copies shows."""
        agent = self.config.agent
        return PageSnapshot(
            number=-1 - int(time.time()),  # passes count from 1, and may have come before
            at=time.time(),
            version=__version__,
            mode="standby",
            engine=agent.engine,
            interval=agent.interval_seconds,
            result="standby",
            sentence=words,
            troubles=() if status else (Trouble(words),),
        )

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

    def _set_metrics(self) -> None:
        report, metrics = self.link.report, self.metrics
        metrics.standby.set(not self._master)
        metrics.install_mode.set(self._master and self.config.agent.mode == "install")
        metrics.peer_answered_timestamp_seconds.set(report.answered_at)
        metrics.peer_copied_timestamp_seconds.set(report.same_at)
        metrics.peer_refused.inc(report.refused - self._refused)
        self._refused = report.refused
        metrics.term.set(self.link.terms.load().term)
        if report.claim:
            metrics.peer_generation.set(report.claim.generation)


def run(config: Config) -> None:
    """Returns after SIGTERM or SIGINT. Raises `SarError` where it cannot start."""
    with Lock(config.agent.state_dir, "agent.lock", says=ANOTHER):
        StandbyDaemon(config).run()
    log.info("stopped; the routes in force stay")


def number_above(manager: SubnetManager, highest: Callable[[], int]) -> None:
    """From now on, the manager reports that it has heard of all numbers up to `highest()`, too.

    A plugin refuses a generation that is lower than one it has had. While a fabric was in two
    parts, the other OpenSM may have gone further than this one; it would refuse copies of this
    agent's routes. **Weak spot:** a method of the manager is replaced, since whatever numbers a
    plan asks the manager for the highest number, in three places."""
    own = manager.status

    def status() -> SmStatus:
        found = own()
        return replace(found, highest_generation=max(found.highest_generation, highest()))

    manager.status = status  # type: ignore[method-assign]
