"""The wait between two passes: until the next one is due, or something moved and then settled.

Whether something moved is determined by comparing with the status that the last pass used, not with
the status after it: OpenSM may fall back to another engine during the pass, or while a routing key
is served, and that must not become the normal state.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sar_agent.agent.loop import Agent
from sar_agent.agent.quiet import SILENT_SECONDS
from sar_agent.agent.repair_calls import RepairCalls
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.util.plural import plural

log = logging.getLogger(__name__)
KEYS_AGAIN = 0.2
"""Seconds between two turns for requests for routing keys that wait."""


@dataclass(frozen=True)
class DaemonSignals:
    """`wake`: something happened. `stop`: this process is to end. `edited`: topology.conf was."""

    wake: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)
    edited: threading.Event = field(default_factory=threading.Event)

    def listen(self, also: Callable[[], None] = lambda: None) -> None:
        """SIGTERM and SIGINT set both, and call `also`: in a thread of their own, since a handler
        may interrupt the main thread while it has the lock of one of the two."""
        ends = (signal.SIGTERM, signal.SIGINT)
        heard, tell = socket.socketpair()
        tell.setblocking(False)

        def listen() -> None:
            while heard.recv(1)[0] not in ends:
                pass
            self.stop.set()
            also()
            self.wake.set()

        threading.Thread(target=listen, daemon=True).start()
        # Python writes a signal's number to the descriptor below only where it has a handler.
        for number in ends:
            signal.signal(number, lambda number, frame: None)
        signal.set_wakeup_fd(tell.detach(), warn_on_full_buffer=False)


def wait(
    agent: Agent, signals: DaemonSignals, alive: Callable[[], None], calls: RepairCalls
) -> bool:
    """Return True when the next pass is to begin, or the agent to end. `alive` feeds the
    watchdog."""
    pacing, pace, poll = agent.pacing, agent.pacing.pace, agent.config.opensm.poll_seconds
    normal = LastStatus(agent)
    pace.forget("status")  # ask at once: the pass may have taken minutes
    while True:
        signals.wake.clear()
        if signals.stop.is_set() or calls.pending:
            return True
        # After an unforeseen error, only the end of the process comes sooner.
        rest = agent.unexpected.wait("pass")
        if signals.edited.is_set() and not rest:
            return True
        if pace.due("status"):  # however often the loop is woken, the fabric is watched
            alive()
            pace.put_off("status", poll)
            if not rest and (situation := normal.moved()):
                log.info("something moved: %s", situation)
                debounce = agent.config.agent.fabric_debounce_seconds
                signals.stop.wait(min(debounce, pacing.left()))
                return True
        if busy := agent.keys.waiting:
            agent.serve_keys()
        for at in agent.events.inbox.pending() or ():
            pacing.heard(at)
        left = max(pacing.left(), rest)
        if not left:
            return True
        nap = min(left, pace.left("status"), rest or left)
        # Requests that wait for their job, or for OpenSM, get another turn soon.
        signals.wake.wait(min(nap, KEYS_AGAIN) if busy else nap)


class LastStatus:
    """The status that the last pass used, and what this process itself put in force since."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        used = agent.observer.last_status
        # A pass that ended before it read the status would have seen the present one.
        self.status = used.status if used else agent.ask_status()
        self._answered = time.monotonic()

    def moved(self) -> str:
        """What is worth a pass of its own, in words; empty where nothing has changed, the manager
        does not answer, or is still at work: a pass could not install before it is done."""
        now, last = self.agent.ask_status(), self.status
        if now is None and self.agent.config.agent.peer:
            silent = time.monotonic() - self._answered > SILENT_SECONDS
            return f"{self.agent.manager.name} does not answer" * silent
        self._answered = time.monotonic()
        if now is None or now == last or now.state == "at work":
            return ""
        ours = now.ours and now.identity == self.agent.current.identity
        if last and ours and now.identity != last.identity:  # a pass or a key of this process
            last = self.status = replace(
                now,
                process=last.process,
                role=last.role,
                topology_changes=last.topology_changes,
                switches=last.switches,
                hca_ports=last.hca_ports,
            )
        situation = self._situation(now)
        return "" if last and situation == self._situation(last) else situation

    def _situation(self, status: SmStatus) -> str:
        """The part of a status that is worth a pass of its own when it changes."""
        return (
            f"{self.agent.manager.name} {status.process} is {status.role}, has engine "
            f"{status.engine} in force (generation {status.generation}, "
            f"{status.amendments} repairs) on fabric "
            f"{status.topology_changes} with {plural(status.switches, 'switch', 'switches')}, "
            f"{plural(status.hca_ports, 'port')}, "
            f"{status.unknown_terminals} unknown ({status.state}, {status.unconfirmed_switches} "
            "switches unconfirmed)"
        )
