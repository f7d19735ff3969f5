"""A subnet manager whose next plan is numbered above what another OpenSM had in force.

A plugin refuses a generation that is lower than one it has had. While a fabric was in two parts,
the other OpenSM may have gone further than this one; it would refuse copies of this agent's routes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, SmStatus, SubnetManager


class NumberedAbove(SubnetManager):
    """`manager`, with all numbers up to `highest()` taken."""

    def __init__(self, manager: SubnetManager, highest: Callable[[], int]) -> None:
        self.manager, self.highest, self.name = manager, highest, manager.name
        self.calls = manager.calls

    def status(self) -> SmStatus:
        """The manager's, which has heard of `highest()`, too."""
        status = self.manager.status()
        return replace(status, highest_generation=max(status.highest_generation, self.highest()))

    def fabric(self) -> Fabric:
        """The manager's."""
        return self.manager.fabric()

    def routes_in_force(self, fabric: Fabric, *, wait: bool = True) -> InForce:
        """The manager's."""
        return self.manager.routes_in_force(fabric, wait=wait)

    def install(self, plan: Plan, proved_from: str | None) -> InForce:
        """By the manager."""
        return self.manager.install(plan, proved_from)

    def wait_for_call(self, answered: int) -> int:
        """The manager's."""
        return self.manager.wait_for_call(answered)

    def decline_call(self, call: int) -> None:
        """By the manager."""
        self.manager.decline_call(call)

    def recover(self) -> str:
        """By the manager."""
        return self.manager.recover()

    def confirm_restart(self, generation: int, *, compare: bool) -> None:
        """By the manager."""
        self.manager.confirm_restart(generation, compare=compare)

    def notice(self, kind: Literal["unpath", "repath"], update: int, generation: int) -> None:
        """By the manager."""
        self.manager.notice(kind, update, generation)
