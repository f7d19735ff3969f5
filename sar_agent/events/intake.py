"""All ways by which messages reach the agent, as configured: TCP port and Unix socket."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sar_agent.config.model import Config
from sar_agent.errors import Unavailable
from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.counters import MessageCounters
from sar_agent.events.dispatch import Decode, Dispatcher, JobEvents, MessageHandler
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import Event, MessageRefused, RefusalReason
from sar_agent.events.munge import Munge
from sar_agent.events.server import MessageServer, listen_tcp, listen_unix
from sar_agent.jobs.record import JobRecord

log = logging.getLogger(__name__)


class EventIntake:
    """`inbox` fills between `start` and `stop`."""

    def __init__(
        self,
        config: Config,
        authority: Authority,
        counters: MessageCounters,
        wake: Callable[[], None],
        *,
        handlers: Sequence[MessageHandler],
        status: Callable[[], Mapping[str, Any]],
        job_answer: Callable[[Event, int], Mapping[str, Any]] = lambda event, uid: {},
    ) -> None:
        """`handlers` take the messages that are not of Slurm's hooks. `job_answer` returns what the
        answer to a hook says about its job, `status` what `sar-agent status` shows beside the
        counters. `wake` is called when something is in the inbox."""
        self.config, self.run_dir = config.events, config.agent.run_dir
        self.authority, self.counters = authority, counters
        self.handlers, self.job_answer, self.status = handlers, job_answer, status
        self.inbox = Inbox(wake, trusted=authority.trusted)
        self._server: MessageServer | None = None

    def start(self) -> None:
        """If the Unix socket or munge is unavailable, log it and rely on polling. There is a TCP
        port only if an administrator configured it, so failing to open that raises
        `Unavailable`."""
        jobs = JobEvents(self.authority, self.inbox, self.config.environment, self.job_answer)
        listeners = self._listeners()
        dispatcher = Dispatcher(self._decoder(), jobs, self.counters, self.handlers, self.status)
        if listeners:
            self._server = MessageServer(dispatcher, listeners)
            self._server.start()

    def stop(self) -> None:
        """The Unix socket is removed, so that clients know at once."""
        if self._server:
            self._server.stop()
            self._server = None
            if path := self.config.socket_path(self.run_dir):
                path.unlink(missing_ok=True)

    def queue_read(self, records: Iterable[JobRecord]) -> None:
        """Slurm's queue as last read: it says whose the jobs are."""
        self.authority.known = {
            number: KnownJob(record.uid, record.traffic)
            for record in records
            for number in record.numbers
        }

    def _decoder(self) -> Decode:
        try:
            return Munge(self.config.munge_socket).decode
        except Unavailable as error:
            log.warning("%s", error)
            return _refuse_all

    def _listeners(self) -> list[socket.socket]:
        listeners = []
        if address := self.config.tcp_host_port:
            listeners.append(listen_tcp(*address))
        if path := self.config.socket_path(self.run_dir):
            try:
                listeners.append(listen_unix(path))
            except Unavailable as error:
                log.warning("%s; no events are received there", error)
        return listeners


def _refuse_all(credential: bytes) -> tuple[int, bytes]:
    raise MessageRefused(
        RefusalReason.NO_MUNGE, "the agent has no libmunge, so it cannot tell who sent a message"
    )
