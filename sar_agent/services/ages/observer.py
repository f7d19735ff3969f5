"""Writes how old the sources are, after each pass: `status` is a process of its own that reads no
source."""

from __future__ import annotations

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report
from sar_agent.agent.parts import Parts
from sar_agent.agent.source_ages import write_ages
from sar_agent.errors import SarError


class AgesObserver:
    """Keeps `sources.json` in the agent's run folder."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self._problems = parts, parts.problems[0]
        self._folder = parts.config.agent.run_dir

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """Also after a pass that failed: then it tells what was read last."""
        problem = ""
        try:
            write_ages(self._folder, self.parts.observer.ages | self.parts.ages)
        except SarError as error:
            problem = f"{error}; status does not tell how old the sources are"
        self._problems.problem("ages", problem, "the ages of the sources can be written again")
