"""`run`: pass after pass until told to stop.

Between two passes the subnet manager is asked every few seconds whether anything moved (another
engine in force, other switches or ports). That costs it a look into its memory, and a fallback is
repaired within seconds, not at the next poll of Slurm. An edit of topology.conf wakes the loop,
and so do events of Slurm's hooks (`events/`), as soon as the pacer allows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from sar_agent import __version__
from sar_agent.agent.build import build_agent
from sar_agent.agent.quiet import PASSES, Quiet
from sar_agent.agent.repair_calls import RepairCalls
from sar_agent.agent.waiting import DaemonSignals, wait
from sar_agent.config.model import Config
from sar_agent.routing import load_engine
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.freed_memory import return_freed_memory
from sar_agent.util.lock_file import ANOTHER, Lock
from sar_agent.util.systemd import Notifier

log = logging.getLogger(__name__)
TAKING_SECONDS = 60.0
"""Seconds to wait for an archive of the other machine that is being taken."""
FALTERING = 5.0
"""Seconds until the next pass where even the wait between two passes failed."""


def run(config: Config) -> None:
    """Returns after SIGTERM or SIGINT. Raises `SarError` where it cannot start: another agent
    runs, the metrics' port is taken, the engine is unknown."""
    signals, notifier, folder = DaemonSignals(), Notifier(), config.agent.state_dir
    metrics = Metrics(__version__, config.agent.mode, config.agent.engine)
    load_engine(config.agent.engine)
    with only_agent(config):
        signals.listen()
        quiet = Quiet(config, metrics)
        if address := config.agent.metrics_host_port:
            metrics.serve(*address)
        try:
            while not signals.stop.is_set():
                if not quiet.may_begin(quiet.read()):
                    notifier.ready()
                    quiet.wait(notifier.alive, signals.stop.wait)
                if not signals.stop.is_set():
                    with Lock(folder, PASSES, TAKING_SECONDS):
                        run_passes(config, signals, notifier, metrics=metrics, ends=quiet.must_end)
        finally:
            notifier.stopping()
    log.info("stopped; the routes in force stay")


@contextmanager
def only_agent(config: Config) -> Iterator[None]:
    """Until the end of the block no other agent has this state folder, or installs by this
    `run_dir`: two with states of their own would replace each other's routes for ever. Raises
    `Unavailable` where another one runs, `SarError` where a folder cannot be written."""
    with ExitStack() as held:
        held.enter_context(Lock(config.agent.state_dir, "agent.lock", says=ANOTHER))
        if config.agent.mode == "install":
            held.enter_context(Lock(config.agent.run_dir, "agent.lock", says=ANOTHER))
        yield


def run_passes(
    config: Config,
    signals: DaemonSignals,
    notifier: Notifier,
    metrics: Metrics,
    ends: Callable[[], bool],
) -> None:
    """Pass after pass until `signals.stop`, or `ends()` before one, of an agent that begins with
    what is on disk.

    `metrics` are served already."""
    wake, stop = signals.wake, signals.stop

    def touched() -> None:
        signals.edited.set()
        wake.set()

    agent = build_agent(config, daemon=True, on_event=wake.set, on_edit=touched, metrics=metrics)
    observer, events, pacing = agent.observer, agent.events, agent.pacing
    calls = RepairCalls(agent.manager, wake.set)
    agent.keys.publish()
    events.start()
    if config.agent.mode == "install":
        calls.start()
    if observer.topology:
        observer.topology.start()
    mode, engine = config.agent.mode, config.agent.engine
    log.info("sar-agent %s, %s mode, engine %s", __version__, mode, engine)
    notifier.ready()
    guard = agent.unexpected.guard
    try:
        while not stop.is_set() and not ends():
            signals.edited.clear()
            pacing.begin()
            guard("events", lambda: observer.hints.add(events.inbox.drain()), None)
            call = calls.next_call()
            report = agent.pass_once(called=call > 0)
            calls.end(call)
            pacing.end()
            return_freed_memory()
            guard("events", lambda: events.queue_read(observer.running()), None)
            agent.keys.prepare()
            notifier.alive(report.sentence)
            if not guard("waiting", partial(wait, agent, signals, notifier.alive, calls), False):
                stop.wait(FALTERING)
    finally:
        calls.stop()
        events.stop()
        if observer.topology:
            observer.topology.stop()
