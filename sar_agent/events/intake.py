"""All that the agent hears with, as configured, behind two calls: `start` and `stop`."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from sar_agent.config.model import Config
from sar_agent.errors import Unavailable
from sar_agent.events.authority import Authority, KnownJob, trusted_uids
from sar_agent.events.counters import MessageCounters, MessageMetrics
from sar_agent.events.dispatch import Dispatcher, JobEvents, MessageHandler
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import Event, MessageRefused, RefusalReason
from sar_agent.events.munge import Munge
from sar_agent.events.server import MessageServer, listen_tcp, listen_unix
from sar_agent.events.spool import Spool
from sar_agent.jobs.record import JobRecord

log = logging.getLogger(__name__)


class IntakeMetrics(MessageMetrics, Protocol):
    """`MessageMetrics`, and the number of jobs whose reports wait."""

    def count_waiting(self, waiting: Callable[[], float]) -> None:
        """`waiting` returns that number."""
        ...


class EventIntake:
    """`inbox` fills from `start` on. A Unix socket that cannot be made, or munge that is not
    there, is said and the queue polled; what only a person can have asked for must work."""

    def __init__(self, config: Config, metrics: IntakeMetrics, wake: Callable[[], None]) -> None:
        self.config = config.events
        self.run_dir = config.agent.run_dir
        self.tally = MessageCounters(metrics)
        self.authority = Authority(trusted_uids(self.config.trusted_users))
        self.authority.refused = lambda why, sentence: self.tally.refused(why, sentence, "queue")
        self.inbox = Inbox(wake, trusted=self.authority.trusted)
        metrics.count_waiting(lambda: len(self.inbox))
        self.families: list[MessageHandler] = []
        """Beside Slurm's hooks; to be filled before `start`."""
        self.more: Callable[[Event, int], Mapping[str, Any]] = lambda event, uid: {}
        """What the answer to a hook says of its job."""
        self.status: Callable[[], Mapping[str, Any]] = dict
        """What `sar-agent status` is told beside the counters."""
        self._door: MessageServer | None = None
        self._spool: Spool | None = None

    def start(self) -> None:
        """Raises `Unavailable` for a TCP port in use and a spool that cannot be used."""
        jobs = JobEvents(self.authority, self.inbox, self.config.environment, self.more)
        hearing = Dispatcher(_nobody, jobs, self.tally, self.families, self.status)
        listeners = self._listeners()
        try:
            hearing.decode = Munge(self.config.munge_socket).decode
        except Unavailable as error:
            log.warning("%s", error)
        if self.config.spool:
            self._spool = Spool(hearing, Path(self.config.spool))
            self._spool.start()
        if listeners:
            self._door = MessageServer(
                hearing, listeners, patience=self.config.line_timeout_seconds
            )
            self._door.start()

    @property
    def has_door(self) -> bool:
        """Whether there is an address at which answers are given."""
        return bool(self.config.tcp_host_port or self.config.socket_path(self.run_dir))

    def stop(self) -> None:
        """The Unix socket is removed, so that clients know at once."""
        if self._door:
            self._door.stop()
            self._door = None
            if path := self.config.socket_path(self.run_dir):
                path.unlink(missing_ok=True)
        if self._spool:
            self._spool.stop()
            self._spool = None

    def know(self, records: Iterable[JobRecord]) -> None:
        """What the queue said last: whose the jobs are."""
        self.authority.known = {
            number: KnownJob(record.uid, record.traffic)
            for record in records
            for number in record.numbers
        }

    def not_owner(self, sentence: str) -> None:
        """What the queue showed only after it was said."""
        self.tally.refused(RefusalReason.NOT_OWNER, sentence, "queue")

    def too_many(self, sentence: str) -> None:
        """What was heard, and is more than may be kept."""
        self.tally.refused(RefusalReason.TOO_MANY, sentence, "queue")

    def _listeners(self) -> list[socket.socket]:
        listeners = []
        if address := self.config.tcp_host_port:
            listeners.append(listen_tcp(*address))
        if path := self.config.socket_path(self.run_dir):
            try:
                listeners.append(listen_unix(path))
            except Unavailable as error:
                log.warning("%s; events are not heard there", error)
        return listeners


def _nobody(credential: bytes) -> tuple[int, bytes]:
    raise MessageRefused(RefusalReason.NO_MUNGE, "the agent has no libmunge, so it believes nobody")
