"""`run`: pass after pass until told to stop.

Between two passes the plugin is asked every few seconds whether anything moved (another engine in
force, other switches or ports), which costs it a look into its memory: a fallback is mended within
seconds, not at the next look at Slurm. An edit of topology.conf wakes the loop, too.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from sar_agent import __version__
from sar_agent.agent.gather import Gatherer
from sar_agent.agent.lock import Lock
from sar_agent.agent.loop import Agent
from sar_agent.agent.notify import Notifier
from sar_agent.config import Config
from sar_agent.install.bridge import Bridge, BridgeStatus

log = logging.getLogger(__name__)


def run(config: Config) -> None:
    """Returns after SIGTERM or SIGINT. Raises `SarError` where it cannot start: another agent
    runs, the metrics' port is taken, the engine is unknown."""
    wake, stop = threading.Event(), threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        wake.set()

    notifier = Notifier()
    with Lock(config.agent.state_dir, "agent.lock"):
        bridge = Bridge(config.opensm.bridge_socket, config.opensm.load_deadline_seconds)
        gatherer = Gatherer(config, bridge, wake.set)
        agent = Agent(config, bridge=bridge, gatherer=gatherer)
        if address := config.agent.metrics_host_port:
            agent.metrics.serve(*address)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        if gatherer.topology:
            gatherer.topology.start()
        log.info(
            "sar-agent %s, %s mode, engine %s", __version__, config.agent.mode, config.agent.engine
        )
        notifier.ready()
        try:
            while not stop.is_set():
                report = agent.pass_once()
                notifier.alive(report.sentence)
                _wait(agent, config, wake, stop, notifier.alive)
        finally:
            notifier.stopping()
            if gatherer.topology:
                gatherer.topology.stop()
    log.info("stopped; the routes in force stay")


def _wait(
    agent: Agent,
    config: Config,
    wake: threading.Event,
    stop: threading.Event,
    alive: Callable[[], None],
) -> None:
    """Until it is time for the next pass, or something moved and then settled."""
    end = time.monotonic() + config.agent.interval_seconds
    before = _situation(agent.ask_status())
    while (left := end - time.monotonic()) > 0 and not stop.is_set():
        if wake.wait(min(left, config.opensm.poll_seconds)):
            break
        alive()
        now = _situation(agent.ask_status())
        if now is not None and now != before:
            log.info("something moved: %s", now)
            stop.wait(min(config.agent.settle_seconds, left))
            break
    wake.clear()


def _situation(status: BridgeStatus | None) -> str | None:
    """What about OpenSM is worth a pass of its own when it changes."""
    if status is None:
        return None
    return (
        f"OpenSM {status.pid} is {status.sm_state}, has engine {status.engine_in_force} in force "
        f"(generation {status.generation_in_force}) on fabric {status.topology_changes} with "
        f"{status.switches} switches, {status.hca_ports} ports, {status.unknown_terminals} unknown"
    )
