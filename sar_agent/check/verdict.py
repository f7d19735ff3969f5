"""The checks together, as a verdict that a plan carries and a person can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sar_agent.check.deadlock import credit_loop, loop_free
from sar_agent.check.proof import Proved, prove, prove_change
from sar_agent.check.reach import check_reach
from sar_agent.errors import CheckFailed, CreditLoop, InputError
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
        """Raises `CheckFailed` with the first problem, `CreditLoop` where it is one."""
        if self.problems:
            raise (CheckFailed if self.unreachable_pairs else CreditLoop)(self.problems[0])


class Checked(NamedTuple):
    """A verdict, and the proof that the next check can build on; None unless it passed."""

    verdict: Verdict
    proved: Proved | None


def check_routes(fabric: Fabric, routes: Routes) -> Verdict:
    """Reachability first, because dependencies are only defined along paths that arrive."""
    return check_changed(fabric, routes, None).verdict


def check_changed(fabric: Fabric, routes: Routes, before: Proved | None) -> Checked:
    """The verdict of `check_routes`, in the time that what differs from `before` takes.

    `before` may be of any tables, in force or not, and of the fabric before something failed.
    """
    shape = (fabric.destinations, fabric.switches)
    if routes.egress.shape[1:] != shape:
        raise InputError(
            f"routes for {routes.egress.shape[1:]} (destinations, switches) do not fit "
            f"{fabric.name} with {shape}",
            remedy="compute them for this fabric",
        )
    lanes = routes.virtual_lanes
    proved = before and prove_change(before, fabric, routes)
    if not (proved := proved or prove(fabric, routes)):
        reach = check_reach(fabric, routes)
        problem = f"{reach.unreachable_pairs} pairs do not reach; the first is {reach.first}"
        return Checked(Verdict(reach.unreachable_pairs, lanes, False, False, (problem,)), None)
    hosts, everyone = loop_free(proved.wiring, proved.counts)
    if hosts:
        return Checked(Verdict(0, lanes, True, everyone, ()), proved)
    loop = credit_loop(fabric, proved.wiring, proved.counts)
    assert loop, "what cannot be peeled has a cycle"
    lane, cycle = loop
    hops = ", ".join(fabric.channel_name(c) for c in cycle[:8])
    more = f" … ({len(cycle)} channels)" if len(cycle) > 8 else ""
    problem = (
        f"credit loop in virtual lane {lane}: {hops}{more}, and back; "
        f"engine {routes.engine} needs more virtual lanes than {lanes} on this fabric"
    )
    return Checked(Verdict(0, lanes, False, False, (problem,)), None)
