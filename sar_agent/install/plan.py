"""`Plan`: routes with the proof and the numbers that let them be installed.

Only a `Plan` can be installed (`SubnetManager.install` takes nothing else), and only `make_plan`
makes one, so nothing that failed a check can reach the subnet manager.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property

from sar_agent.check import ProvedTables, Verdict, check_changed, senders_proved
from sar_agent.check.transition import Transition
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import RoutesFile, encode
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures, measure
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.routing.lid_offsets import repeat_to_switches
from sar_agent.routing.routes import Routes
from sar_agent.util.stages import stage


@dataclass(frozen=True, eq=False)
class Plan:
    """Routes that may be installed, with all that was proved and measured of them."""

    generation: int
    fabric: Fabric
    mix: JobMix
    routes: Routes
    """With the tables that were proved; they cannot be written to."""
    verdict: Verdict
    proved: ProvedTables
    """What was proved, on which the check of the next plan builds."""
    measures: Measures
    traffic: Traffic
    """Traffic of the channels, on which the measures of the next plan build."""
    levels: int = 1
    """Bit set of the service levels that earlier plans may have assigned to jobs which still run;
    all but these and the plan's own are dropped (lanes by path only)."""
    transition: Transition | None = None
    """How the plan may replace the tables that were in force; None before that was examined."""
    made_at: float = field(default_factory=time.time)
    """Unix seconds."""

    @cached_property
    def routes_file(self) -> RoutesFile:
        """The plan as a routes file, the form that OpenSM's plugin reads. At 11,664 hosts it takes
        half a second, so it is made once."""
        return routes_to_file(
            self.fabric,
            self.routes,
            self.generation,
            int(self.made_at),
            senders=self.routes.senders,
            levels=self.levels,
        )

    @cached_property
    def image(self) -> bytes:
        """The bytes of the routes file: to be loaded, and to be kept for a rollback."""
        return encode(self.routes_file)


def make_plan(
    generation: int,
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    before: Plan | None = None,
) -> Plan:
    """Checks and measures `routes`, with switches' LIDs all led as their first; raises
    `CheckFailed` with the first problem.

    `before` is any plan made earlier; the result does not depend on it, but both stages look only
    at what differs from it.
    """
    routes = repeat_to_switches(routes)
    with stage("check"):
        verdict, proved = check_changed(fabric, routes, before.proved if before else None)
        verdict.require()
        assert proved
    lanes = None if proved.hops is None else proved.hops.lane
    routes = replace(routes, egress=proved.egress, hop_lane=lanes)
    with stage("senders"):
        routes = replace(routes, senders=senders_proved(fabric, routes, proved))
    with stage("measure"):
        traffic = traffic_of(fabric, mix, routes, before.traffic if before else None)
        measures = measure(fabric, mix, routes, traffic=traffic)
    return Plan(generation, fabric, mix, routes, verdict, proved, measures, traffic)
