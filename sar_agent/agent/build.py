"""The composition root: the parts of an agent, built leaves first and handed on finished.

Nothing is assigned into a part after it was made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sar_agent import __version__
from sar_agent.agent.commit import Committer
from sar_agent.agent.first_tables import FirstTables
from sar_agent.agent.hints import Hints
from sar_agent.agent.history import DecisionLog, History
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.loop import Agent
from sar_agent.agent.observe_site import SiteObserver
from sar_agent.agent.parts import LastBaseline
from sar_agent.agent.phased_updates import PhasedUpdates
from sar_agent.agent.planner import Planner
from sar_agent.agent.publish import Publisher
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.config.model import Config
from sar_agent.events.authority import Authority, trusted_uids
from sar_agent.events.counters import MessageCounters
from sar_agent.events.intake import EventIntake
from sar_agent.events.message import RefusalReason
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.subnet_manager import SubnetManager, load_subnet_manager
from sar_agent.install.transit import Transit
from sar_agent.jobs.source import JobSource, job_source
from sar_agent.routing import load_engine
from sar_agent.services.keys.pool import KeyPool
from sar_agent.services.keys.requests import KeyRequests
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.pace import Backoff
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.text_files import remove_leftovers
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger("sar_agent.agent.loop")
LONGEST_PAUSE = 600.0
"""Seconds after the same reroute has failed again and again."""


@dataclass(frozen=True)
class Site:
    """What reads a site, and what is known of its routes."""

    manager: SubnetManager
    installed: InstalledRoutes
    observer: SiteObserver
    problems: ProblemLog


def build_site(
    config: Config, manager: SubnetManager | None = None, source: JobSource | None = None
) -> Site:
    """For a command that observes once. `manager` and `source`: instead of those configured."""
    manager = manager or load_subnet_manager(config)
    problems = ProblemLog(log)
    installed = InstalledRoutes(config, manager, problems)
    hints = Hints(config.agent.state_dir, trusted_uids(config.events.trusted_users))
    source = source or job_source(config.slurm)
    observer = SiteObserver(config, manager, installed.store, source, hints)
    return Site(manager, installed, observer, problems)


def build_committer(config: Config, site: Site, who: str) -> Committer:
    """For a command of the person `who` that installs; its metrics are not served."""
    metrics = Metrics(__version__, config.agent.mode, config.agent.engine)
    decisions = DecisionLog(History(config.agent.state_dir), who, site.problems)
    publisher = Publisher(metrics, _map_path(config), site.problems)
    return Committer(site.installed, decisions, publisher)


def build_agent(
    config: Config,
    manager: SubnetManager | None = None,
    source: JobSource | None = None,
    *,
    daemon: bool = False,
    on_event: Callable[[], None] = lambda: None,
    on_edit: Callable[[], None] = lambda: None,
    metrics: Metrics | None = None,
) -> Agent:
    """An agent for single passes (`once`): it hears no messages, and acts on every change at once.
    As a `daemon`, its intake of messages will be started, and changes of the jobs may wait.

    `manager` and `source`: instead of those that the configuration names. `on_event` and `on_edit`
    are called from other threads: a message came, topology.conf changed. `metrics`: those of this
    process, where it has had an agent before. Raises `InputError` for an engine, a manager or a
    source that does not exist."""
    folder = config.agent.state_dir
    for each in (folder, folder / "generations", config.agent.run_dir):
        remove_leftovers(each)
    metrics = metrics or Metrics(__version__, config.agent.mode, config.agent.engine)
    unexpected, problems = UnexpectedErrors(metrics.unexpected_errors), ProblemLog(log)
    engine = load_engine(config.agent.engine)
    # The subnet manager, and what it has in force.
    manager = manager or load_subnet_manager(config)
    installed = InstalledRoutes(config, manager, problems)
    # What users say: hints, requests for keys, subscriptions.
    counters = MessageCounters(metrics)

    def refused(why: RefusalReason, sentence: str) -> None:
        counters.refused(why, sentence, "queue")

    authority = Authority(trusted_uids(config.events.trusted_users), refused=refused)
    hints = Hints(folder, authority.trusted, refused)
    requests = KeyRequests(authority, on_event)
    pool = KeyPool(config.keys, folder, requests)
    source = source or job_source(config.slurm)
    observer = SiteObserver(config, manager, installed.store, source, hints, unexpected, on_edit)
    listens = daemon and config.events.has_address
    updates = PhasedUpdates(config, metrics, manager, observer, authority, listens=listens)
    events = EventIntake(
        config,
        authority,
        counters,
        on_event,
        handlers=(*updates.handlers, requests),
        status=updates.status,
        job_answer=requests.of_job,
    )
    metrics.events_waiting.set_function(lambda: len(events.inbox))
    # A pass.
    publisher = Publisher(metrics, _map_path(config), problems)
    history = History(folder)
    history.check()
    decisions = DecisionLog(history, "agent", problems)
    for broken in installed.generations.broken():
        log.warning("%s; no rollback can use it", broken)
    return Agent(
        config=config,
        manager=manager,
        metrics=metrics,
        unexpected=unexpected,
        problems=(problems, observer.problems),
        installed=installed,
        observer=observer,
        pool=pool,
        planner=Planner(config, engine, pool),
        transit=build_transit(config, manager),
        updates=updates,
        publisher=publisher,
        committer=Committer(installed, decisions, publisher),
        pacing=Pacing(config.agent, patient=daemon),
        # One failure is often transient, so the next pass may try again.
        backoff=Backoff(config.agent.interval_seconds, LONGEST_PAUSE, free=1),
        first_tables=FirstTables(folder),
        baseline=LastBaseline(),
        events=events,
    )


def build_transit(config: Config, manager: SubnetManager) -> Transit:
    """The way into force through `manager`."""
    return Transit(manager, AssignedLevels(config.agent.state_dir))


def _map_path(config: Config) -> Path:
    return config.agent.run_dir / "job-to-terminal.map"
