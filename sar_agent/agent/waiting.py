"""The wait between two passes: until the next one is due, or something moved and then settled.

Whether something moved is determined by comparing with the status that the last pass used, not with
the status after it: OpenSM may fall back to another engine during the pass, or while a routing key
is served, and that must not become the normal state.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from sar_agent.agent.loop import Agent
from sar_agent.agent.repair_calls import RepairCalls
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
    """`alive` feeds the watchdog."""

    def __init__(
        self,
        agent: Agent,
        woken: WakeEvents,
        inbox: Inbox,
        alive: Callable[[], None],
        calls: RepairCalls,
    ) -> None:
        self.agent, self.woken, self.inbox = agent, woken, inbox
        self.alive, self.calls = alive, calls

    def wait(self) -> bool:
        """Return True when the next pass is to begin, or the agent to end."""
        agent, woken, pacing = self.agent, self.woken, self.agent.pacing
        poll, pace = agent.config.opensm.poll_seconds, pacing.pace
        normal = LastStatus(agent)
        pace.forget("status")  # ask at once: the pass may have taken minutes
        while True:
            woken.wake.clear()
            if woken.stop.is_set() or self.calls.pending:
                return True
            # After an unforeseen error, only the end of the process comes sooner.
            rest = agent.unexpected.wait("pass")
            if woken.edited.is_set() and not rest:
                return True
            if pace.due("status"):  # however often the loop is woken, the fabric is watched
                self.alive()
                pace.put_off("status", poll)
                if not rest and (situation := normal.moved()):
                    log.info("something moved: %s", situation)
                    debounce = agent.config.agent.fabric_debounce_seconds
                    woken.stop.wait(min(debounce, pacing.left()))
                    return True
            busy = agent.pool.requests.busy and not agent.keys.unexpected.wait("keys")
            if busy:
                agent.serve_keys()
            for at in self.inbox.pending() or ():
                pacing.heard(at)
            left = max(pacing.left(), rest)
            if not left:
                return True
            nap = min(left, pace.left("status"), rest or left)
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
        now, last = self.agent.ask_status(), self.status
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
            f"{status.topology_changes} with {status.switches} switches, {status.hca_ports} ports, "
            f"{status.unknown_terminals} unknown ({status.state}, {status.unconfirmed_switches} "
            "switches unconfirmed)"
        )
