"""All checks of routes together: their findings as a `Verdict`, which a plan carries.

The built-in checks run first, because a credit loop is defined only along paths that arrive; the
registered ones (`registered.py`) run on routes that passed those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from sar_agent.check.order import Dependencies, first_names
from sar_agent.check.proof import ProvedTables, prove
from sar_agent.check.reachability import check_reachability
from sar_agent.check.registered import Finding, registered_findings
from sar_agent.errors import CreditLoop
from sar_agent.fabric import Fabric
from sar_agent.routing.routes import Routes


@dataclass(frozen=True)
class Verdict:
    """What the checks found. Routes without findings may be installed."""

    unreachable_pairs: int
    virtual_lanes: int
    deadlock_free: bool
    """Hosts cannot close a credit loop."""
    deadlock_free_everyone: bool
    """Nor can traffic to the switches' own LIDs, or to and from aggregation units."""
    findings: tuple[Finding, ...] = ()
    hop_by_hop: bool = False
    """Lanes are chosen by the ports a packet passes, not by its service level."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The findings in words, one sentence each."""
        return tuple(finding.problem for finding in self.findings)

    @property
    def lanes_hold(self) -> str:
        """What hosts must do for the proof to hold, in words."""
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
        return not self.findings

    def require(self) -> None:
        """Raises the first finding as the error class that it carries: `CreditLoop` for a credit
        loop, `CheckFailed` or another class derived from it for the others."""
        for finding in self.findings:
            raise finding.error(finding.problem)


class CheckResult(NamedTuple):
    """A verdict, and the proof of the tables; None where there are findings."""

    verdict: Verdict
    proved: ProvedTables | None


def check_routes(fabric: Fabric, routes: Routes) -> Verdict:
    """The verdict of all checks. Raises `InputError` where `routes` are not of this fabric."""
    return check_and_prove(fabric, routes).verdict


def check_and_prove(fabric: Fabric, routes: Routes) -> CheckResult:
    """The verdict of `check_routes`, with the proof: reachability, credit loops, registered checks.

    *Between hosts*, traffic of jobs closes no loop; this is required. *Everyone*: nor does traffic
    to the switches' own LIDs, and to and from the aggregation units that newer switches show as
    ports of their own. Where units are attached to spines, or cables are broken, no shortest paths
    may satisfy the second condition in one lane. That traffic is next to nothing, and every engine
    of OpenSM ignores it, so the condition is reported but not required."""
    routes.require_fit(fabric)
    lanes, findings = routes.virtual_lanes, tuple[Finding, ...]()
    if not (proved := prove(fabric, routes)):
        reach = check_reachability(fabric, routes)
        problem = f"{reach.unreachable_pairs} pairs do not reach; the first is {reach.first}"
        findings = (Finding(problem),)
        return CheckResult(Verdict(reach.unreachable_pairs, lanes, False, False, findings), None)
    wiring, hosts, others = proved.wiring, proved.counts[:lanes], proved.counts[lanes:]
    everyone = Dependencies(wiring, hosts | others).acyclic
    loop = [] if everyone else Dependencies(wiring, hosts).cycle()
    if not loop:
        findings = registered_findings(fabric, routes)
        verdict = Verdict(0, lanes, True, everyone, findings, wiring.by_hop)
        return CheckResult(verdict, None if findings else replace(proved, everyone=everyone))
    names = [fabric.channel_name(int(fabric.channel_by_port[s, p])) for s, p, _ in loop]
    if wiring.by_hop:
        names = [f"{name} in lane {lane}" for name, (*_, lane) in zip(names, loop, strict=True)]
        problem = f"credit loop with lanes chosen hop by hop: {first_names(names)}, and back"
    else:
        problem = (
            f"credit loop in virtual lane {loop[0][2]}: {first_names(names)}, and back; "
            f"engine {routes.engine} needs more virtual lanes than {lanes} on this fabric"
        )
    findings = (Finding(problem, CreditLoop),)
    return CheckResult(Verdict(0, lanes, False, False, findings, wiring.by_hop), None)
