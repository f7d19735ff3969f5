"""What the jobs of now would have without sar-agent: the tables of `agent.baseline` beside ours.

Once our routes are in force, what is planned and what is in force are the same, and the gain can be
seen only against such tables: those that our first install replaced, or an engine's. They are made
once for each fabric, after a pass that changed nothing; min-hop takes the place of tables that are
not known, and of an engine that refuses the fabric, as in OpenSM.
"""

from __future__ import annotations

import logging

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.publish import measured
from sar_agent.config.model import BEFORE
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import Routes

log = logging.getLogger(__name__)
QUIET = (Result.NOTHING, Result.HELD, Result.PLANNED)


class Baseline:
    """Measures `agent.baseline`, an engine or `BEFORE`; with "" it does nothing. Before the first
    install, the tables in force are those before it: there is nothing to compare."""

    def __init__(self, parts: Parts) -> None:
        self.engine, self.metrics = parts.config.agent.baseline, parts.metrics
        self.found, self.first_tables = parts.baseline, parts.first_tables
        self._digest = b""
        """Of the fabric of `_routes`."""
        self._routes: Routes | None = None

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """Measures again where the jobs or the fabric have changed."""
        if not self.engine or site is None or (self.engine == BEFORE and not current.state):
            return
        if site.fabric.digest != self._digest:
            self._routes = self.found.measured = None
            if report.result in QUIET:
                self._digest, self._routes = site.fabric.digest, self._route(site.fabric)
        if self._routes is None:
            self.metrics.show_measures("baseline", None)
            return
        found = measured(self.found.measured, site.fabric, site.mix, self._routes)
        self.found.measured = found
        self.metrics.show_measures("baseline", found)

    def _route(self, fabric: Fabric) -> Routes | None:
        if self.engine == BEFORE and (kept := self.first_tables.read(fabric)):
            return kept
        for engine in dict.fromkeys((self.engine, "minhop")):
            if engine == BEFORE:
                continue
            try:
                return load_engine(engine).route(fabric, JobMix(()), Options())
            except SarError as error:
                log.info("no baseline of %s: %s", engine, error)
        return None
