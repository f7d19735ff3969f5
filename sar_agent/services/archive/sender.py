"""`sar-agent send-state --every`: again and again, for a unit of systemd."""

from __future__ import annotations

import logging
import threading
import time

from sar_agent.agent.peer import PeerStore
from sar_agent.agent.quiet import role_of
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.services.archive.exchange import changed_since, send
from sar_agent.util.problem_log import ProblemLog

log = logging.getLogger(__name__)
ASK_AGAIN = 60.0
"""Seconds after which the other machine is asked whether it still has the archive."""
RETRY = 5.0
"""Seconds after it did not take it."""


class Sender:
    """Sends when the state has changed, when the other machine did not have it, and once in
    `ASK_AGAIN` seconds."""

    def __init__(self, config: Config) -> None:
        self.config, self._problems = config, ProblemLog(log)
        self._sent: object = None
        self._due = 0.0

    def turn(self) -> bool:
        """Send if it is time; whether the other machine was asked. Never raises `SarError`."""
        now, state = time.monotonic(), changed_since(self.config)
        if state == self._sent and now < self._due:
            return False
        if role_of(self.config) != "master":
            self._sent, self._due = None, 0.0  # the first moment as master is one to send in
            return False
        if now < self._due and self._sent is None:
            return False
        try:
            said = send(self.config)
        except SarError as error:
            self._sent, self._due = None, now + RETRY
            self._problems.problem("peer", str(error))
            return True
        if state != self._sent:
            log.info("%s", said)
        self._sent, self._due = state, now + ASK_AGAIN
        self._problems.problem("peer", "", "the other machine takes the archive again")
        return True

    def run(self, seconds: float, stop: threading.Event) -> None:
        """Until `stop`, a turn each `seconds`."""
        PeerStore(self.config.agent.state_dir)
        while not stop.is_set():
            self.turn()
            stop.wait(seconds)
