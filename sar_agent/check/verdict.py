"""The checks together, as a verdict that a plan carries and a person can read."""

from __future__ import annotations

from dataclasses import dataclass

from sar_agent.check.deadlock import credit_loop
from sar_agent.check.reach import check_reach
from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric import Fabric
from sar_agent.routing.routes import Routes


@dataclass(frozen=True)
class Verdict:
    """What was found; `problems` is empty where the routes may be installed."""

    unreachable_pairs: int
    virtual_lanes: int
    deadlock_free: bool
    """Between hosts."""
    deadlock_free_everyone: bool
    """Also with what goes to the switches' own LIDs, and to and from aggregation units."""
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems

    def require(self) -> None:
        """Raises `CheckFailed` with the first problem."""
        if self.problems:
            raise CheckFailed(self.problems[0])


def check_routes(fabric: Fabric, routes: Routes) -> Verdict:
    """Reachability first, because dependencies are only defined along paths that arrive."""
    shape = (fabric.destinations, fabric.switches)
    if routes.egress.shape[1:] != shape:
        raise InputError(
            f"routes for {routes.egress.shape[1:]} (destinations, switches) do not fit "
            f"{fabric.name} with {shape}",
            remedy="compute them for this fabric",
        )
    lanes = routes.virtual_lanes
    reach = check_reach(fabric, routes)
    if reach.unreachable_pairs:
        problem = f"{reach.unreachable_pairs} pairs do not reach; the first is {reach.first}"
        return Verdict(reach.unreachable_pairs, lanes, False, False, (problem,))
    loop = credit_loop(fabric, routes)
    if loop:
        lane, cycle = loop
        hops = ", ".join(fabric.channel_name(c) for c in cycle[:8])
        more = f" … ({len(cycle)} channels)" if len(cycle) > 8 else ""
        problem = (
            f"credit loop in virtual lane {lane}: {hops}{more}, and back; "
            f"engine {routes.engine} needs more virtual lanes than {lanes} on this fabric"
        )
        return Verdict(0, lanes, False, False, (problem,))
    everyone = credit_loop(fabric, routes, everyone=True) is None
    return Verdict(0, lanes, True, everyone, ())
