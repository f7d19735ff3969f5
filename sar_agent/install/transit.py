"""From the routes in force to a plan's: examined, then installed at once, in stages, or not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from sar_agent.check.transition import Transition, Way, examine
from sar_agent.errors import SarError
from sar_agent.install.bridge import Bridge
from sar_agent.install.changes import Changes, changes
from sar_agent.install.install import Timed, put_in_force
from sar_agent.install.plan import Plan, file_to_routes, make_plan
from sar_agent.install.routes_file import RoutesFile, read_routes_file
from sar_agent.routing.routes import Routes

log = logging.getLogger(__name__)


class NotSafe(SarError):
    """The plan may not come into force from here; what is in force stays."""

    def __init__(self, transition: Transition, sentence: str = "") -> None:
        self.transition = transition
        super().__init__(sentence or f"{transition.words}; the routes in force stay")


@dataclass(frozen=True)
class Arrived:
    """What is in force now."""

    plan: Plan
    """The plan, or as much of it as could be reached safely, with the generation in force."""
    found: RoutesFile
    """As read back."""
    changed: Changes
    transition: Transition | None
    """None where it is not known what was in force before."""


def read_in_force(bridge: Bridge, plan: Plan) -> Routes:
    """What OpenSM has in force, read back, on the indices of the plan's fabric. Raises `SarError`
    where it cannot be told."""
    return file_to_routes(plan.fabric, read_routes_file(bridge.dump().path))


def in_force(bridge: Bridge, plan: Plan) -> Routes | None:
    """The same; None where it cannot be told."""
    try:
        return read_in_force(bridge, plan)
    except SarError:
        return None


def transition_to(plan: Plan, before: Routes | None, timed: Timed = nullcontext) -> Plan:
    """The plan with the verdict on its transition from `before`."""
    if before is None:
        return plan
    with timed("transition"):
        return replace(plan, transition=examine(plan.fabric, before, plan.routes, plan.proved))


def bring_into_force(
    bridge: Bridge,
    plan: Plan,
    path: Path,
    before: Routes | None,
    timed: Timed = nullcontext,
    between: Callable[[Plan], None] = lambda stage: None,
    *,
    whole: bool = False,
) -> Arrived:
    """Installs a plan of which `transition_to` was asked, through its stages, each with a
    generation of its own, checked, read back, and then told to `between`; `whole`: in one step,
    whatever the verdict, where nobody is there whom a mixture of old and new tables could hurt.

    Raises `NotSafe` where there is no safe way, else as `put_in_force`: then the last stage that
    arrived is in force.
    """
    transition, step = plan.transition, plan
    stages: tuple[Routes, ...] = (plan.routes,)
    if transition and not whole:
        if transition.way is Way.UNSAFE:
            raise NotSafe(transition)
        if not transition.proved:
            log.warning("generation %d: the transition is %s", plan.generation, transition.words)
        stages = transition.stages
    for number, routes in enumerate(stages):
        if routes is not plan.routes:
            generation, mix = plan.generation + number, plan.mix
            step = make_plan(generation, plan.fabric, mix, routes, timed, before=plan)
            step = replace(step, transition=transition)
        else:
            step = replace(plan, generation=plan.generation + number)
        found = put_in_force(bridge, step, path, timed)
        between(step)
    return Arrived(step, found, changes(plan.fabric, before, step.routes), transition)
