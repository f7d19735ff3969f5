"""The checks together, as a verdict that a plan carries and a person can read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sar_agent.check.credit_loops import credit_loop, loop_free
from sar_agent.check.hop_lanes import hop_loop
from sar_agent.check.proof import ProvedTables, prove, prove_change
from sar_agent.check.reachability import check_reachability
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
    hop_by_hop: bool = False
    """Lanes are chosen by the ports a packet passes, not by its service level."""

    @property
    def lanes_hold(self) -> str:
        """What the proof asks of hosts, in words."""
        if self.virtual_lanes == 1:
            return "1 virtual lane(s)"
        if self.hop_by_hop:
            return (
                f"{self.virtual_lanes} virtual lane(s), lanes hop by hop: holds whatever service "
                "level hosts use"
            )
        return (
            f"{self.virtual_lanes} virtual lane(s), lanes by path: holds where hosts use the "
            "service level of their path records"
        )

    @property
    def passed(self) -> bool:
        return not self.problems

    def require(self) -> None:
        """Raises `CheckFailed` with the first problem, `CreditLoop` where it is one."""
        if self.problems:
            raise (CheckFailed if self.unreachable_pairs else CreditLoop)(self.problems[0])


class CheckResult(NamedTuple):
    """A verdict, and the proof that the next check can build on; None unless it passed."""

    verdict: Verdict
    proved: ProvedTables | None


def check_routes(fabric: Fabric, routes: Routes) -> Verdict:
    """Reach first, because dependencies are only defined along paths that arrive."""
    return check_changed(fabric, routes, None).verdict


def check_changed(fabric: Fabric, routes: Routes, before: ProvedTables | None) -> CheckResult:
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
        reach = check_reachability(fabric, routes)
        problem = f"{reach.unreachable_pairs} pairs do not reach; the first is {reach.first}"
        return CheckResult(Verdict(reach.unreachable_pairs, lanes, False, False, (problem,)), None)
    if proved.hops is not None:
        return _check_hops(fabric, routes, proved)
    hosts, everyone = loop_free(proved.wiring, proved.counts)
    if hosts:
        return CheckResult(
            Verdict(0, lanes, True, everyone, ()), replace(proved, everyone=everyone)
        )
    loop = credit_loop(fabric, proved.wiring, proved.counts)
    assert loop, "what cannot be peeled has a cycle"
    lane, cycle = loop
    named = [fabric.channel_name(c) for c in cycle]
    problem = (
        f"credit loop in virtual lane {lane}: {_some(named)}, and back; "
        f"engine {routes.engine} needs more virtual lanes than {lanes} on this fabric"
    )
    return CheckResult(Verdict(0, lanes, False, False, (problem,)), None)


def _check_hops(fabric: Fabric, routes: Routes, proved: ProvedTables) -> CheckResult:
    """The verdict where lanes are chosen hop by hop."""
    assert proved.hops is not None
    lanes, counts = routes.virtual_lanes, proved.counts.view(np.uint8)
    loop = hop_loop(proved.wiring, proved.hops, counts, everyone=True)
    everyone = not loop
    if not everyone:
        loop = hop_loop(proved.wiring, proved.hops, counts, everyone=False)
    if not loop:
        proved = replace(proved, everyone=everyone)
        return CheckResult(Verdict(0, lanes, True, everyone, (), True), proved)
    named = [
        f"{fabric.channel_name(int(fabric.channel_by_port[s, p]))} in lane {lane}"
        for s, p, lane in loop
    ]
    problem = f"credit loop with lanes chosen hop by hop: {_some(named)}, and back"
    return CheckResult(Verdict(0, lanes, False, False, (problem,), True), None)


def _some(named: list[str]) -> str:
    more = f" … ({len(named)} channels)" if len(named) > 8 else ""
    return ", ".join(named[:8]) + more
