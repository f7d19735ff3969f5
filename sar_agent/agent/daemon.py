"""`run`: pass after pass until told to stop.

Between two passes the subnet manager is asked every few seconds whether anything moved (another
engine in force, other switches or ports). That costs it a look into its memory, and a fallback is
repaired within seconds, not at the next poll of Slurm. An edit of topology.conf wakes the loop,
and so do events of Slurm's hooks (`events/`), as soon as the pacer allows.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from types import FrameType

from sar_agent import __version__
from sar_agent.agent.build import Wakers, build_daemon
from sar_agent.agent.reroute_pacer import PaceLimits, ReroutePacer
from sar_agent.agent.waiting import PassTimer, WakeEvents
from sar_agent.config.model import Config
from sar_agent.keys.make_key import warm
from sar_agent.util.lock_file import Lock
from sar_agent.util.systemd import Notifier

log = logging.getLogger(__name__)
FALTERING = 5.0
"""Seconds until the next pass where even the wait between two passes failed."""


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

    notifier, pacer = Notifier(), ReroutePacer(PaceLimits.of(config.agent))
    with Lock(config.agent.state_dir, "agent.lock"):
        daemon = build_daemon(config, pacer=pacer, wakers=Wakers(wake.set, touched))
        agent, events = daemon.agent, daemon.events
        observer, requests = agent.observer, agent.keys.pool.requests
        timer = PassTimer(
            agent, config, WakeEvents(wake, stop, edited), events.inbox, pacer, notifier.alive
        )
        agent.keys.publish()
        if address := config.agent.metrics_host_port:
            agent.metrics.serve(*address)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        events.start()
        if observer.topology:
            observer.topology.start()
        log.info(
            "sar-agent %s, %s mode, engine %s", __version__, config.agent.mode, config.agent.engine
        )
        notifier.ready()
        warmed = False
        guard = agent.unexpected.guard
        try:
            while not stop.is_set():
                edited.clear()
                pacer.begin(time.monotonic())
                guard("events", lambda: observer.hints.add(events.inbox.take()), None)
                report = agent.pass_once()
                pacer.end(time.monotonic())
                guard("events", lambda: events.queue_read(observer.running()), None)
                if not requests.closed and not warmed:  # for sites that start without `warm-up`
                    warmed = True
                    threading.Thread(target=warm, daemon=True).start()
                notifier.alive(report.sentence)
                if not guard("waiting", timer.wait, False):
                    stop.wait(FALTERING)
        finally:
            notifier.stopping()
            events.stop()
            if observer.topology:
                observer.topology.stop()
    log.info("stopped; the routes in force stay")
