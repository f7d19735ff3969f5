"""`Plan`: routes with the proof and the numbers that let them be installed.

Only a `Plan` can be installed (`SubnetManager.install` takes nothing else), and only `make_plan`
makes one, so nothing that failed a check can reach the subnet manager.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sar_agent.check import (
    ProvedTables,
    Verdict,
    certificate_of,
    check_and_prove,
    covers_units,
    senders_proved,
)
from sar_agent.check.transition import Transition
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U32
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import MAX_LOAD, RoutesFile, decode, encode
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures, measure
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
    numbers: U32
    """uint32[L, S, P], the channel numbers (`check.order`): the certificate that the
    routes file carries."""
    levels: int = 1
    """Bit set of the service levels that earlier plans may have assigned to jobs which still run;
    all but these and the plan's own are dropped (lanes by path only)."""
    transition: Transition | None = None
    """How the plan may replace the tables that were in force; None before that was examined."""
    made_at: float = field(default_factory=time.time)
    """Unix seconds."""

    @cached_property
    def image(self) -> bytes:
        """The plan as a routes file, the form that OpenSM's plugin reads: to be loaded, and to be
        kept for a rollback. If paths of aggregation units close a cycle, it has no certificate,
        because the plugin, which takes these units for hosts, would refuse it."""
        senders = self.routes.senders
        certified = senders is None or covers_units(self.fabric, self.proved, senders, self.numbers)
        return encode(
            routes_to_file(
                self.fabric,
                self.routes,
                self.generation,
                int(self.made_at),
                senders=senders,
                levels=self.levels,
                numbers=self.numbers if certified else None,
                loads=self._loads() if certified else None,
            )
        )

    @cached_property
    def routes_file(self) -> RoutesFile:
        """What `image` says, in its order, which is that of what is read back."""
        return decode(self.image)

    def _loads(self) -> NDArray[np.uint32]:
        """uint32[S, P]: the load of each channel in 1/65536 of the largest. A sixteenth of it (all,
        without jobs) is the number of destinations to which hosts send over the channel, so that a
        repair also distributes over ports that no job uses."""
        switches, ports = self.numbers.shape[1:]
        trees = self.proved.counts[: len(self.numbers)].reshape(-1, switches, ports, ports)
        load = _share(trees.sum(axis=(0, 3), dtype=np.float64))
        jobs = np.zeros_like(load)
        at = self.fabric.channel_source, self.fabric.channel_port
        jobs[at] = self.measures.traffic.load
        return np.rint(_share(load + 15 * _share(jobs)) * MAX_LOAD).astype(np.uint32)


def make_plan(
    generation: int,
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    before: Plan | None = None,
    order: U32 | None = None,
) -> Plan:
    """Checks and measures `routes`, with switches' LIDs all led as their first; raises
    `CheckFailed` with the first problem.

    `before` is any plan made earlier: its channel numbers, or those in `order`, are kept where they
    rise in `routes`, too; nothing else of the result depends on it.
    """
    routes.require_fit(fabric)  # before any kernel reads them
    unproved = repeat_to_switches(routes)

    with stage("check"):
        verdict, proved = check_and_prove(fabric, unproved)
        verdict.require()
        assert proved
    lanes = proved.wiring.hop_lane if proved.wiring.by_hop else None
    routes = replace(unproved, egress=proved.egress, hop_lane=lanes)
    with stage("senders"):
        senders = senders_proved(fabric, routes, proved)
        routes = replace(routes, senders=senders)
    with stage("certificate"):
        kept = before.numbers if before and order is None else order
        numbers = certificate_of(fabric, proved, senders, kept)
    with stage("measure"):
        measures = measure(fabric, mix, routes)
    return Plan(generation, fabric, mix, routes, verdict, proved, measures, numbers)


def _share(load: NDArray[np.float64]) -> NDArray[np.float64]:
    """As shares of the largest."""
    shares: NDArray[np.float64] = load / max(load.max(initial=0.0), 1e-300)
    return shares
