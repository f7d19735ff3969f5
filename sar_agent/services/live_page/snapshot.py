"""What the page shows: one immutable snapshot for each finished pass.

A pass only hands over what it has made anyway. Everything that the page derives from it is computed
when somebody looks, in the thread of the HTTP server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import Measures
from sar_agent.quality.channel_traffic import Traffic
from sar_agent.reports.page_box import PageBox, Trouble
from sar_agent.routing.routes import Routes


@dataclass(frozen=True, eq=False)
class PageSnapshot:
    """A finished pass. Arrays and objects are shared with the agent, which never changes them."""

    number: int = 0
    """Grows with each pass."""
    at: float = 0.0
    """When the pass ended, Unix seconds; 0 before the first."""
    version: str = ""
    mode: str = ""
    engine: str = ""
    """The configured one."""
    interval: float = 30.0
    """Seconds between two passes at the most."""
    result: str = ""
    sentence: str = "the first pass has not ended yet"
    troubles: tuple[Trouble, ...] = ()
    in_force: dict[str, Any] | None = None
    """`engine`, `ours`, `generation`, `amendments`, `since`, `lanes` …; None where not known."""
    fabric: Fabric | None = None
    mix: JobMix | None = None
    starts: Mapping[str, float] = field(default_factory=dict)
    """When jobs started, Unix seconds, by their ids, where that is known."""
    pending: tuple[JobRecord, ...] = ()
    """Jobs that wait, with the nodes that Slurm plans for them."""
    routes: Routes | None = None
    """Those in force."""
    measures: Measures | None = None
    """Of the routes in force under the jobs of now."""
    planned: tuple[Measures, Traffic] | None = None
    """Of the routes that are planned beside those in force, under the jobs of now; None where the
    agent installs."""
    saved: Callable[[], dict[str, Any]] = dict
    """What the last 30 days have saved, read when somebody looks; empty where that is not known."""
    decisions: tuple[dict[str, Any], ...] = ()
    """The newest first."""
    sources: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    """When each source was like what is shown, Unix seconds, and why it is stale, if it is."""
    boxes: tuple[PageBox, ...] = ()

    @property
    def load(self) -> F64 | None:
        """float64[C], predicted for the routes in force and the jobs of now."""
        return self.measures.channel_load if self.measures else None
