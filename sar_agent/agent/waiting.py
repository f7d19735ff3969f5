"""The wait between two passes: until the next one is due, or something moved and then settled.

Whether something moved is determined by comparing with the status that the last pass used, not with
the status after it: OpenSM may fall back to another engine during the pass, or while a routing key
is served, and that must not become the normal state.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from sar_agent.agent.loop import Agent
from sar_agent.agent.repair_calls import RepairCalls
from sar_agent.agent.reroute_pacer import ReroutePacer
from sar_agent.config.model import Config
from sar_agent.events.inbox import Inbox
from sar_agent.install.subnet_manager import SmStatus

log = logging.getLogger(__name__)
KEYS_AGAIN = 0.2
"""Seconds between two turns for requests for routing keys that wait."""


@dataclass(frozen=True)
class WakeEvents:
    """`wake`: something happened. `stop`: the agent is to end. `edited`: topology.conf was."""

    wake: threading.Event
    stop: threading.Event
    edited: threading.Event


class PassTimer:
    """`alive` feeds the watchdog. `clock` must not jump."""

    def __init__(
        self,
        agent: Agent,
        config: Config,
        woken: WakeEvents,
        inbox: Inbox,
        pacer: ReroutePacer,
        alive: Callable[[], None],
        calls: RepairCalls,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.agent, self.config, self.woken = agent, config, woken
        self.inbox, self.pacer, self.alive, self.clock = inbox, pacer, alive, clock
        self.calls = calls

    def wait(self) -> bool:
        """Return True when the next pass is to begin, or the agent to end."""
        agent, woken, poll = self.agent, self.woken, self.config.opensm.poll_seconds
        normal = LastStatus(agent)
        ask_at = self.clock()  # at once: the pass may have taken minutes
        while True:
            woken.wake.clear()
            if woken.stop.is_set() or self.calls.pending:
                return True
            now = self.clock()
            # After an unforeseen error, only the end of the process comes sooner.
            rest = agent.unexpected.wait("pass")
            if woken.edited.is_set() and not rest:
                return True
            if now >= ask_at:  # however often the loop is woken, the fabric is watched
                self.alive()
                ask_at = now + poll
                if not rest and (situation := normal.moved()):
                    log.info("something moved: %s", situation)
                    left = max(0.0, self.pacer.look_at() - now)
                    woken.stop.wait(min(self.config.agent.fabric_debounce_seconds, left))
                    return True
            busy = agent.keys.pool.requests.busy and not agent.keys.unexpected.wait("keys")
            if busy:
                agent.serve_keys()
            for at in self.inbox.pending() or ():
                self.pacer.heard(at)
            now = self.clock()
            left = max(self.pacer.look_at() - now, rest)
            if left <= 0:
                return True
            nap = min(left, max(0.0, ask_at - now), rest or left)
            # Requests that wait for their job, or for OpenSM, get another turn soon.
            woken.wake.wait(min(nap, KEYS_AGAIN) if busy else nap)


class LastStatus:
    """The status that the last pass used, and what this process itself put in force since."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        used = agent.observer.last_status
        # A pass that ended before it read the status would have seen the present one.
        self.status = used.status if used else agent.ask_status()

    def moved(self) -> str:
        """What is worth a pass of its own, in words; empty where nothing has changed, the manager
        does not answer, or is still at work: a pass could not install before it is done."""
        now = self.agent.ask_status()
        if now is None or now == self.status or now.state == "at work":
            return ""
        if self.status is not None and self._own_install(now):
            self.status = replace(
                self.status,
                engine=now.engine,
                ours=now.ours,
                identity=now.identity,
                generation=now.generation,
                amendments=now.amendments,
                unknown_terminals=now.unknown_terminals,
                state=now.state,
                unconfirmed_switches=now.unconfirmed_switches,
            )
        situation = self._situation(now)
        same = self.status is not None and situation == self._situation(self.status)
        return "" if same else situation

    def _own_install(self, now: SmStatus) -> bool:
        """Whether a pass or a routing key of this process installed the routes in force."""
        before = self.status.identity if self.status else ""
        return now.ours and now.identity == self.agent.current.identity != before

    def _situation(self, status: SmStatus) -> str:
        """The part of a status that is worth a pass of its own when it changes."""
        return (
            f"{self.agent.manager.name} {status.process} is {status.role}, has engine "
            f"{status.engine} in force (generation {status.generation}, "
            f"{status.amendments} repairs) on fabric "
            f"{status.topology_changes} with {status.switches} switches, {status.hca_ports} ports, "
            f"{status.unknown_terminals} unknown ({status.state}, {status.unconfirmed_switches} "
            "switches unconfirmed)"
        )
