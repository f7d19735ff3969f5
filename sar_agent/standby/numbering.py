"""Numbers plans above what another OpenSM had in force.

A plugin refuses a generation that is lower than one it has had. While a fabric was in two parts,
the other OpenSM may have gone further than this one; it would refuse copies of this agent's routes.

**Weak spot:** a method of the manager is replaced, since whatever numbers a plan asks the manager
for the highest number, in three places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sar_agent.install.subnet_manager import SmStatus, SubnetManager


def number_above(manager: SubnetManager, highest: Callable[[], int]) -> None:
    """From now on, the manager reports that it has heard of all numbers up to `highest()`, too."""
    own = manager.status

    def status() -> SmStatus:
        found = own()
        return replace(found, highest_generation=max(found.highest_generation, highest()))

    manager.status = status  # type: ignore[method-assign]
