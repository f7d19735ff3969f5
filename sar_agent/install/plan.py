"""`Plan`: routes with the proof and the numbers that let them be installed.

Only a `Plan` can be installed (`put_in_force` takes nothing else), and `make_plan` is the way to
one, so nothing that failed a check can reach OpenSM.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from sar_agent.check import ProvedTables, Verdict, check_changed, senders_proved
from sar_agent.check.transition import Transition
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures, measure
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.routing.lid_offsets import repeat_to_switches
from sar_agent.routing.routes import Routes


@dataclass(frozen=True, eq=False)
class Plan:
    """What would be, or is, in force."""

    generation: int
    fabric: Fabric
    mix: JobMix
    routes: Routes
    """With the tables that were proved; nobody can write to them."""
    verdict: Verdict
    proved: ProvedTables
    """For the check of the next plan."""
    measures: Measures
    traffic: Traffic
    """For the measures of the next plan."""
    levels: int = 1
    """Bit set of the service levels that jobs which still run may have been told by plans before;
    all but these and the plan's own are dropped (lanes by path only)."""
    transition: Transition | None = None
    """From what was in force when it was asked for; None where it was not."""
    made_at: float = field(default_factory=time.time)
    """Unix seconds."""

    def routes_file(self) -> RoutesFile:
        """As the plugin reads it."""
        return routes_to_file(
            self.fabric,
            self.routes,
            self.generation,
            int(self.made_at),
            senders=self.routes.senders,
            levels=self.levels,
        )


def make_plan(
    generation: int,
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    timed: Callable[[str], AbstractContextManager[object]] = nullcontext,
    before: Plan | None = None,
) -> Plan:
    """Checks and measures `routes`, with switches' LIDs all led as their first; raises
    `CheckFailed` with the first problem.

    `timed` is entered with the name of each stage, `check` and `measure`. The plan does not depend
    on `before`, any plan made earlier; both stages look only at what differs from it.
    """
    routes = repeat_to_switches(routes)
    with timed("check"):
        verdict, proved = check_changed(fabric, routes, before.proved if before else None)
        verdict.require()
        assert proved
    lanes = None if proved.hops is None else proved.hops.lane
    routes = replace(routes, egress=proved.egress, hop_lane=lanes)
    with timed("senders"):
        routes = replace(routes, senders=senders_proved(fabric, routes, proved))
    with timed("measure"):
        traffic = traffic_of(fabric, mix, routes, before.traffic if before else None)
        measures = measure(fabric, mix, routes, traffic=traffic)
    return Plan(generation, fabric, mix, routes, verdict, proved, measures, traffic)
