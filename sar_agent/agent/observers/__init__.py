"""What looks at each pass from outside: nothing in the pass asks them, and none of them fails it.

An observer is a module of this folder and its line in `OBSERVERS`; without both, all else works.
The module's `observer` makes it of an agent's parts.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Report
from sar_agent.agent.parts import Parts

OBSERVERS = (
    "baseline",
    "cables",
    "job_days",
    "page",
    "ages",
)
"""Called in this order; the names are also labels of a metric."""


class PassObserver(Protocol):
    """Something that is told of every pass, failed ones, too."""

    def after_pass(self, current: Current, site: Observation | None, report: Report) -> None:
        """`current` is in force now. `site` is what the pass saw; None where it ended before."""


def make_observers(parts: Parts) -> dict[str, PassObserver]:
    """All observers by name."""
    modules = {name: import_module(f"{__name__}.{name}") for name in OBSERVERS}
    return {name: module.observer(parts) for name, module in modules.items()}
