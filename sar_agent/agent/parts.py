"""The parts of an agent: each step of a pass gets all of them, and uses those that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sar_agent.agent.commit import Committer
from sar_agent.agent.first_tables import FirstTables
from sar_agent.agent.installed_routes import InstalledRoutes
from sar_agent.agent.observe_site import SiteObserver
from sar_agent.agent.planner import Planner
from sar_agent.agent.publish import Publisher
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.agent.source_ages import SourceAge
from sar_agent.agent.updates import Updates
from sar_agent.config.model import Config
from sar_agent.events.intake import EventIntake
from sar_agent.install.subnet_manager import SubnetManager
from sar_agent.install.transit import Transit
from sar_agent.quality import Measures
from sar_agent.reports.page_box import PageBox
from sar_agent.services.keys.pool import KeyPool
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.pace import Backoff
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.unexpected_errors import UnexpectedErrors


@dataclass(eq=False)
class LastBaseline:
    """What the jobs would have under the engine of `agent.baseline`; it stays empty without one."""

    measured: Measures | None = None


@dataclass(eq=False)
class Parts:
    """`build.build_agent` makes them, leaves first."""

    config: Config
    manager: SubnetManager
    metrics: Metrics
    unexpected: UnexpectedErrors
    problems: Sequence[ProblemLog]
    """The agent's own first."""
    installed: InstalledRoutes
    observer: SiteObserver
    pool: KeyPool
    planner: Planner
    transit: Transit
    updates: Updates
    publisher: Publisher
    committer: Committer
    pacing: Pacing
    backoff: Backoff
    """Reroutes that failed are tried again, but ever less often."""
    first_tables: FirstTables
    """Those that the first install replaced."""
    baseline: LastBaseline
    events: EventIntake
    """What it hears from jobs."""
    boxes: dict[str, PageBox] = field(default_factory=dict)
    """By observer: what it has to say on the page."""
    ages: dict[str, SourceAge] = field(default_factory=dict)
    """Of sources that observers read."""
