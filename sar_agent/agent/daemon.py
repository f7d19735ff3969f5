"""`run`: pass after pass until told to stop.

Between two passes the plugin is asked every few seconds whether anything moved (another engine in
force, other switches or ports), which costs it a look into its memory: a fallback is mended within
seconds, not at the next look at Slurm. An edit of topology.conf wakes the loop, too, and so do
events from Slurm's hooks (`events/`), as soon as the nerves let them.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from sar_agent import __version__
from sar_agent.agent.gather import Gatherer
from sar_agent.agent.keys.making import warm
from sar_agent.agent.lock import Lock
from sar_agent.agent.loop import Agent
from sar_agent.agent.nerves import Nerves, Pace
from sar_agent.agent.notify import Notifier
from sar_agent.config import Config
from sar_agent.events.ears import Ears
from sar_agent.events.keys import KeyDesk
from sar_agent.install.bridge import Bridge, BridgeStatus

log = logging.getLogger(__name__)
KEYS_AGAIN = 0.2
"""Seconds."""


def run(config: Config) -> None:
    """Returns after SIGTERM or SIGINT. Raises `SarError` where it cannot start: another agent
    runs, the metrics' port is taken, the engine is unknown."""
    wake, stop, edited = threading.Event(), threading.Event(), threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        wake.set()

    def touched() -> None:
        edited.set()
        wake.set()

    notifier, nerves = Notifier(), Nerves(Pace.of(config.agent))
    with Lock(config.agent.state_dir, "agent.lock"):
        bridge = Bridge(config.opensm.bridge_socket, config.opensm.load_deadline_seconds)
        gatherer = Gatherer(config, bridge, touched)
        agent = Agent(config, bridge=bridge, gatherer=gatherer, nerves=nerves)
        ears = Ears(config, agent.metrics, wake.set)
        subscribers = agent.updates.subscribers(ears.authority)
        ears.families.append(subscribers)
        ears.status = subscribers.status
        agent.updates.hears = ears.has_door
        gatherer.hints.refused = ears.not_owner
        desk = agent.keys.desk = KeyDesk(ears.authority, wake.set)
        ears.families.append(desk)
        ears.more = desk.of_job
        agent.keys.show()
        if address := config.agent.metrics_host_port:
            agent.metrics.serve(*address)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        ears.start()
        if gatherer.topology:
            gatherer.topology.start()
        log.info(
            "sar-agent %s, %s mode, engine %s", __version__, config.agent.mode, config.agent.engine
        )
        notifier.ready()
        warmed = False
        try:
            while not stop.is_set():
                edited.clear()
                nerves.begin(time.monotonic())
                gatherer.hints.hear(ears.inbox.take())
                report = agent.pass_once()
                nerves.end(time.monotonic())
                ears.know(gatherer.running())
                if not desk.closed and not warmed:  # for those who start without `warm-up`
                    warmed = True
                    threading.Thread(target=warm, daemon=True).start()
                notifier.alive(report.sentence)
                _wait(agent, config, Woken(wake, stop, edited), ears, nerves, notifier.alive)
        finally:
            notifier.stopping()
            ears.stop()
            if gatherer.topology:
                gatherer.topology.stop()
    log.info("stopped; the routes in force stay")


@dataclass(frozen=True)
class Woken:
    """`wake`: look what it is. `stop`: the end. `edited`: topology.conf."""

    wake: threading.Event
    stop: threading.Event
    edited: threading.Event


def _wait(
    agent: Agent,
    config: Config,
    woken: Woken,
    ears: Ears,
    nerves: Nerves,
    alive: Callable[[], None],
) -> None:
    """Until it is time for the next pass, or something moved and then settled."""
    before = _situation(agent.ask_status())
    ask_at = time.monotonic() + config.opensm.poll_seconds
    while True:
        woken.wake.clear()
        if woken.stop.is_set() or woken.edited.is_set():
            break
        if agent.keys.desk.busy:
            agent.serve_keys()
            before = _situation(agent.ask_status())
        for at in ears.inbox.pending() or ():
            nerves.heard(at)
        now = time.monotonic()
        left = nerves.look_at() - now
        if left <= 0:
            break
        nap = min(left, max(0.0, ask_at - now))
        # Who waits for a job to be seen, or for OpenSM, is looked after again soon.
        nap = min(nap, KEYS_AGAIN) if agent.keys.desk.busy else nap
        if woken.wake.wait(nap) or time.monotonic() < ask_at:
            continue
        alive()
        ask_at = time.monotonic() + config.opensm.poll_seconds
        situation = _situation(agent.ask_status())
        if situation is not None and situation != before:
            log.info("something moved: %s", situation)
            woken.stop.wait(min(config.agent.settle_seconds, left))
            break


def _situation(status: BridgeStatus | None) -> str | None:
    """What about OpenSM is worth a pass of its own when it changes."""
    if status is None:
        return None
    return (
        f"OpenSM {status.pid} is {status.sm_state}, has engine {status.engine_in_force} in force "
        f"(generation {status.generation_in_force}) on fabric {status.topology_changes} with "
        f"{status.switches} switches, {status.hca_ports} ports, {status.unknown_terminals} unknown"
    )
