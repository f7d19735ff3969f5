"""What the jobs of now would have without sar-agent: the tables of `agent.baseline` beside ours.

Once our routes are in force, what is planned and what is in force are the same, and the gain can be
seen only against such tables. They are made once for each fabric, after a pass that changed
nothing; min-hop takes the place of an engine that refuses the fabric, as in OpenSM.
"""

from __future__ import annotations

import logging

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report, Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.publish import measured
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import Routes

log = logging.getLogger(__name__)
QUIET = (Result.NOTHING, Result.HELD, Result.PLANNED)


class Baseline:
    """Measures `agent.baseline`, an engine; with "" it does nothing."""

    def __init__(self, parts: Parts) -> None:
        self.engine, self.metrics = parts.config.agent.baseline, parts.metrics
        self.found = parts.baseline
        self._digest = b""
        """Of the fabric of `_routes`."""
        self._routes: Routes | None = None

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """Measures again where the jobs or the fabric have changed."""
        if not self.engine or site is None:
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
        for engine in dict.fromkeys((self.engine, "minhop")):
            try:
                return load_engine(engine).route(fabric, JobMix(()), Options())
            except SarError as error:
                log.info("no baseline of %s: %s", engine, error)
        return None


observer = Baseline
