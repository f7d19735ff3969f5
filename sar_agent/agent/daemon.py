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
from types import FrameType

from sar_agent import __version__
from sar_agent.agent.gather import Gatherer
from sar_agent.agent.loop import Agent
from sar_agent.agent.reroute_pacer import PaceLimits, ReroutePacer
from sar_agent.agent.waiting import Waiting, WakeEvents
from sar_agent.config.model import Config
from sar_agent.events.intake import EventIntake
from sar_agent.keys.make_key import warm
from sar_agent.keys.requests import KeyRequests
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.util.lock_file import Lock
from sar_agent.util.systemd import Notifier

log = logging.getLogger(__name__)
FALTERING = 5.0
"""Seconds until the next pass where not even the waiting between two of them went well."""


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

    notifier, nerves = Notifier(), ReroutePacer(PaceLimits.of(config.agent))
    with Lock(config.agent.state_dir, "agent.lock"):
        bridge = PluginClient(config.opensm.plugin_socket, config.opensm.load_deadline_seconds)
        gatherer = Gatherer(config, bridge, touched)
        agent = Agent(config, bridge=bridge, gatherer=gatherer, nerves=nerves)
        ears = EventIntake(config, agent.metrics, wake.set)
        subscribers = agent.updates.subscribers(ears.authority)
        ears.families.append(subscribers)
        ears.status = subscribers.status
        agent.updates.hears = ears.has_door
        gatherer.hints.refused = ears.not_owner
        gatherer.hints.too_many = ears.too_many
        desk = agent.keys.desk = KeyRequests(ears.authority, wake.set)
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
        waiting = Waiting(
            agent, config, WakeEvents(wake, stop, edited), ears, nerves, notifier.alive
        )
        guard = agent.unexpected.guard
        try:
            while not stop.is_set():
                edited.clear()
                nerves.begin(time.monotonic())
                guard("events", lambda: gatherer.hints.hear(ears.inbox.take()), None)
                gatherer.used = None
                report = agent.pass_once()
                nerves.end(time.monotonic())
                guard("events", lambda: ears.know(gatherer.running()), None)
                if not desk.closed and not warmed:  # for those who start without `warm-up`
                    warmed = True
                    threading.Thread(target=warm, daemon=True).start()
                notifier.alive(report.sentence)
                if not guard("waiting", waiting.wait, False):
                    stop.wait(FALTERING)
        finally:
            notifier.stopping()
            ears.stop()
            if gatherer.topology:
                gatherer.topology.stop()
    log.info("stopped; the routes in force stay")
