"""What looks at each pass from outside: nothing in the pass asks them, and none of them fails it.

Services bring them (`config/services.py`).
"""

from __future__ import annotations

from typing import Protocol

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report
from sar_agent.agent.parts import Parts
from sar_agent.config.services import load_hook, services


class PassObserver(Protocol):
    """Something that is told of every pass, failed ones, too."""

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """`current` is in force now. `site` is what the pass saw; None where it ended before."""


def make_observers(parts: Parts) -> dict[str, PassObserver]:
    """All observers by the names of their services, which are also labels of a metric."""
    return {
        name: load_hook(name, service.observer)(parts)
        for name, service in services().items()
        if service.observer
    }
