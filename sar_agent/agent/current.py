"""What is in force, since when and from which plan: one frozen value, which every pass hands on.

A pass, a turn for routing keys and a rollback begin with a `Current` and end with another; no part
remembers tables or plans for itself. All of it was read back or is on disk, so `InstalledRoutes`
can make it again after a restart, and one that an error has cut short is only dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sar_agent.agent.state import State
from sar_agent.fabric import Fabric
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce
from sar_agent.quality import Measures
from sar_agent.routing.routes import Routes


@dataclass(frozen=True, eq=False)
class PlannedRoutes:
    """The routes that were planned last, installed or not."""

    made: State
    """What they were made for, whether or not they were installed."""
    routes: Routes
    fabric_digest: bytes
    """Of the fabric on whose indices `routes` are."""
    measured: Measures | None = None


@dataclass(frozen=True, eq=False)
class Current:
    """What is in force, as far as this process knows it."""

    state: State | None = None
    """What is on disk: which generation, made for which jobs, since when, and whether held."""
    in_force: InForce | None = None
    """The tables as they were read back, on a fabric's indices; None where they are not known."""
    read_from: object = None
    """Names the state of manager and fabric that `in_force` was read in; None: read them again."""
    plan: Plan | None = None
    """The plan in force, with its proof and certificate, where this process knows it."""
    identity: str = ""
    """Identity of the tables of `plan`."""
    last: Plan | None = None
    """The last plan that was installed or, where nothing is installed, made: the next one starts
    from it. What is in force may be other tables, by a rollback or a repair."""
    shelter: tuple[bytes, Routes] | None = None
    """The shelter in force, where the manager has amended it, with the digest of its fabric: later
    plans keep it, since subscribers may be on it."""
    planned: PlannedRoutes | None = None
    """What the next decision compares with where nothing is installed."""
    measured: Measures | None = None
    """Measures of the tables that could be measured last."""
    measures: Measures | None = None
    """Measures of the tables in force; None where these are not known, or do not reach all."""

    def plan_in_force(self, fabric: Fabric) -> Plan | None:
        """The plan that the state names; None where this process does not know it, or `fabric` is
        another than it was made for."""
        state = self.state
        if state is None or fabric.digest.hex() != state.fabric_digest:
            return None
        return self.plan if self.identity == state.identity else None

    def planned_as(self, plan: Plan, made: State) -> Current:
        """`plan` was made, as `made` says."""
        planned = PlannedRoutes(made, plan.routes, plan.fabric.digest, plan.measures)
        return replace(self, last=plan, planned=planned)

    def with_plan(self, plan: Plan, found: InForce, state: State) -> Current:
        """`found` is in force, which are the tables of `plan`, and `state` says so."""
        kept = self.shelter if self.shelter and self.shelter[0] == plan.fabric.digest else None
        current = replace(self, state=state, plan=plan, identity=found.identity, shelter=kept)
        return current.planned_as(plan, state)
