"""Between two passes: until it is time for the next one, or something moved and then settled.

What moved is told by comparing with what the last pass itself went by, not with what the plugin
says after it: OpenSM may fall back to another engine during the pass, or while a routing key is
served, and that must not become the state that is taken for normal.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sar_agent.agent.decide import OUR_ENGINE
from sar_agent.agent.loop import Agent
from sar_agent.agent.reroute_pacer import ReroutePacer
from sar_agent.config.model import Config
from sar_agent.events.intake import EventIntake
from sar_agent.opensm.plugin_client import PluginStatus

log = logging.getLogger(__name__)
KEYS_AGAIN = 0.2
"""Seconds."""
BY_INSTALL = (
    *("engine_in_force", "generation_in_force", "unknown_terminals"),
    *("state", "unconfirmed_switches"),
)
"""What an install of our own changes in a status."""


@dataclass(frozen=True)
class WakeEvents:
    """`wake`: look what it is. `stop`: the end. `edited`: topology.conf."""

    wake: threading.Event
    stop: threading.Event
    edited: threading.Event


class Waiting:
    """`alive` feeds the watchdog. `clock` is one that does not jump."""

    def __init__(
        self,
        agent: Agent,
        config: Config,
        woken: WakeEvents,
        ears: EventIntake,
        nerves: ReroutePacer,
        alive: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.agent, self.config, self.woken = agent, config, woken
        self.ears, self.nerves, self.alive, self.clock = ears, nerves, alive, clock

    def wait(self) -> bool:
        """Returns True when the next pass is to begin, or the agent to end."""
        agent, woken, poll = self.agent, self.woken, self.config.opensm.poll_seconds
        normal = LastStatus(agent)
        ask_at = self.clock()  # at once: the pass may have taken minutes
        while True:
            woken.wake.clear()
            if woken.stop.is_set():
                return True
            now = self.clock()
            # After an error that nobody foresaw, nothing but the end of the process is sooner.
            rest = agent.unexpected.wait("pass")
            if woken.edited.is_set() and not rest:
                return True
            if now >= ask_at:  # whoever keeps waking us: the fabric is looked after in its time
                self.alive()
                ask_at = now + poll
                if not rest and (situation := normal.moved()):
                    log.info("something moved: %s", situation)
                    left = max(0.0, self.nerves.look_at() - now)
                    woken.stop.wait(min(self.config.agent.fabric_debounce_seconds, left))
                    return True
            busy = agent.keys.desk.busy and not agent.key_server.unexpected.wait("keys")
            if busy:
                agent.serve_keys()
            for at in self.ears.inbox.pending() or ():
                self.nerves.heard(at)
            now = self.clock()
            left = max(self.nerves.look_at() - now, rest)
            if left <= 0:
                return True
            nap = min(left, max(0.0, ask_at - now), rest or left)
            # Who waits for a job to be seen, or for OpenSM, is looked after again soon.
            woken.wake.wait(min(nap, KEYS_AGAIN) if busy else nap)


class LastStatus:
    """The status that the last pass went by, and what this process itself put in force since."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        used = agent.gatherer.used
        # A pass that ended before its look has no opinion; what is now is what it would have seen.
        self.status = used.status if used else agent.ask_status()

    def moved(self) -> str:
        """What is worth a pass of its own, in words; empty where all is as it was, or OpenSM does
        not answer, or is still at work: a pass could not install before it is done."""
        now = self.agent.ask_status()
        if now is None or now == self.status or now.state not in ("built", "starting"):
            return ""
        if self.status is not None and self._ours(now):
            mine = {name: getattr(now, name) for name in BY_INSTALL}
            self.status = self.status.model_copy(update=mine)
        situation = _situation(now)
        return "" if self.status is not None and situation == _situation(self.status) else situation

    def _ours(self, status: PluginStatus) -> bool:
        """A pass or a routing key may have put another generation in force: one read back."""
        wanted = self.agent.standing.generation
        before = self.status and self.status.generation_in_force
        return (
            status.engine_in_force == OUR_ENGINE
            and status.generation_in_force == wanted
            and wanted != before
        )


def _situation(status: PluginStatus) -> str:
    """What about OpenSM is worth a pass of its own when it changes."""
    return (
        f"OpenSM {status.pid} is {status.sm_state}, has engine {status.engine_in_force} in force "
        f"(generation {status.generation_in_force}) on fabric {status.topology_changes} with "
        f"{status.switches} switches, {status.hca_ports} ports, {status.unknown_terminals} unknown "
        f"({status.state}, {status.unconfirmed_switches} switches unconfirmed)"
    )
