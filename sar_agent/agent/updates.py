"""Brings plans into force by the method that `choose_update` chooses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sar_agent.agent.decide import REPAIRS, Reason
from sar_agent.agent.update_strategy import UpdateChoice, UpdateContext, UpdateMethod, choose_update
from sar_agent.check.transition import Way
from sar_agent.config.update import UpdateConfig
from sar_agent.errors import Unserved
from sar_agent.events.dispatch import MessageHandler
from sar_agent.install.changes import table_changes
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.install.transit import NotSafe
from sar_agent.jobs.record import JobRecord
from sar_agent.telemetry.metrics import Metrics


class Updates:
    """Nobody subscribes to these; `PhasedUpdates` moves subscribers first."""

    handlers: tuple[MessageHandler, ...] = ()
    """They hear subscribers."""

    def __init__(self, config: UpdateConfig, metrics: Metrics) -> None:
        self.config, self.metrics = config, metrics
        self.shelter_owed = False
        """Whether the shelter in force is that of another fabric."""

    def wait_before_planning(self, jobs: int, reason: Reason) -> str:
        """Why a plan made now could not be installed; empty where it could."""
        if self.config.mode != "window" or reason in REPAIRS:
            return ""
        choice = choose_update(self.config, None, UpdateContext(jobs=jobs), datetime.now())
        return choice.why if choice.how is UpdateMethod.WAIT else ""

    def keep_shelter(self, plan: Plan, before: InForce) -> Plan:
        """The plan with the shelter that is in force, where it must not change; else the plan."""
        return plan

    def choose(
        self,
        plan: Plan,
        before: InForce,
        records: Collection[JobRecord],
        *,
        urgent: bool,
        shelter_owed: bool,
    ) -> UpdateChoice:
        """How an examined plan comes into force. `shelter_owed`: it keeps the shelter of another
        plan. Raises `NotSafe` or `Unserved` where it must not be installed."""
        site = self._context(plan, before, records, urgent=urgent)
        choice = choose_update(self.config, plan.transition, site, datetime.now())
        if choice.how is UpdateMethod.REFUSE:
            self.metrics.updates.labels("none", "refused").inc()
            if not site.base_changes:
                self.shelter_owed = False  # until the next plan: what is in force serves
            if plan.transition and plan.transition.way is Way.UNSAFE:
                raise NotSafe(plan.transition, choice.why)
            raise Unserved(choice.why)
        if choice.how is not UpdateMethod.WAIT:
            self.shelter_owed = shelter_owed and choice.how is UpdateMethod.FIVE_PHASE
        return choice

    def _context(
        self, plan: Plan, before: InForce, records: Collection[JobRecord], *, urgent: bool
    ) -> UpdateContext:
        entries = table_changes(plan.fabric, before.routes, plan.routes).entries
        return UpdateContext(jobs=len(records), entries=entries, urgent=urgent)

    @contextmanager
    def under_way(self, choice: UpdateChoice, generation: int) -> Iterator[None]:
        """Around the install of a generation by the method chosen. Raises `SarError`."""
        yield
        self.metrics.updates.labels(choice.how.value, "installed").inc()

    def status(self) -> Mapping[str, Any]:
        """Of an update that is under way, for `sar-agent status`."""
        return {}

    @property
    def unfinished(self) -> bool:
        """Whether an update is under way, so that nothing else may be installed."""
        return False

    def end_unfinished(self) -> str:
        """End an update that was left behind; why nothing may be installed, or empty."""
        return ""

    def pop_summary(self) -> dict[str, Any] | None:
        """The five-phase update that the last decision made, if it did; returned once."""
        return None

    def queue_read(self, owners: Mapping[str, int | None], began: float) -> None:
        """The owners of the running jobs, by a poll that began at `began`. Raises `SarError` where
        what follows from it cannot be saved."""
