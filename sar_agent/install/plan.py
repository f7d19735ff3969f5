"""`Plan`: routes with the proof and the numbers that let them be installed.

Only a `Plan` can be installed (`put_in_force` takes nothing else), and `make_plan` is the way to
one, so nothing that failed a check can reach OpenSM.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sar_agent.check import Proved, Verdict, check_changed
from sar_agent.check.transition import Transition
from sar_agent.fabric import Fabric
from sar_agent.install.routes_file import DROPPED, NO_SWITCH, RoutesFile
from sar_agent.jobs import JobMix
from sar_agent.measure import Measures, measure
from sar_agent.measure.traffic import Traffic, traffic_of
from sar_agent.routing.offsets import repeat_to_switches
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
    proved: Proved
    """For the check of the next plan."""
    measures: Measures
    traffic: Traffic
    """For the measures of the next plan."""
    transition: Transition | None = None
    """From what was in force when it was asked for; None where it was not."""
    made_at: float = field(default_factory=time.time)
    """Unix seconds."""

    def routes_file(self) -> RoutesFile:
        """As the plugin reads it."""
        return routes_to_file(self.fabric, self.routes, self.generation, int(self.made_at))


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
    with timed("measure"):
        traffic = traffic_of(fabric, mix, routes, before.traffic if before else None)
        measures = measure(fabric, mix, routes, traffic=traffic)
    return Plan(generation, fabric, mix, routes, verdict, proved, measures, traffic)


EVERY_LEVEL = 0xFFFF


def routes_to_file(
    fabric: Fabric,
    routes: Routes,
    generation: int,
    made_at: int = 0,
    *,
    senders: NDArray[np.bool_] | None = None,
    levels: int = EVERY_LEVEL,
) -> RoutesFile:
    """Destination-major tables to the switch-major rows a plugin copies into LFTs.

    `senders`: bool[S], the switches where the proof covers hosts that the fabric does not know;
    None: those that have a host. `levels`: bit set of the service levels that live jobs may still
    use; those that are neither among them nor the plan's are dropped (lanes by path only).
    """
    if senders is None:
        senders = np.bincount(fabric.terminal_switch, minlength=fabric.switches) > 0
    lanes = routes.virtual_lanes
    hops = routes.hop_lane if lanes > 1 else None
    by_path = lanes > 1 and hops is None
    table = routes.service_level if by_path else None
    if by_path and table is None:
        table = np.zeros_like(routes.egress)
    offsets = len(routes.egress)
    return RoutesFile(
        generation=generation,
        engine=routes.engine,
        fabric_digest=routes.fabric_digest,
        made_at=made_at,
        lanes=lanes,
        switch_guids=fabric.switch_guid,
        terminal_guids=fabric.terminal_guid,
        terminal_leaf=fabric.terminal_switch.astype(np.uint32),
        switch_ports=fabric.switch_ports.astype(np.uint8),
        forwarding=np.ascontiguousarray(routes.egress.transpose(0, 2, 1)),
        far_ends=_far_ends(fabric),
        senders=senders.astype(np.uint8),
        service_levels=None if table is None else np.ascontiguousarray(table.transpose(0, 2, 1)),
        sl_to_vl=None if table is None else _sl_to_vl(lanes, levels, table),
        fallback_sl=np.zeros(offsets, np.uint8) if by_path else None,
        hop_lanes=hops,
    )


def _sl_to_vl(lanes: int, levels: int, table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8[16]: the lane of each service level; 15, the level is dropped, for those that are
    neither in the bit set `levels` nor in `table`. Level 0 is what fallback paths have."""
    used = np.union1d(table, 0)
    kept = (levels >> np.arange(16) & 1).astype(bool)
    kept[used] = True
    return np.where(kept, np.arange(16) % lanes, DROPPED).astype(np.uint8)


def _far_ends(fabric: Fabric) -> NDArray[np.uint32]:
    """uint32[S, P + 1]: switch · 256 + port at the other end of each live cable."""
    ends = np.full((fabric.switches, 1 + int(fabric.switch_ports.max())), NO_SWITCH, np.uint32)
    up = np.flatnonzero(fabric.channel_up)
    far = fabric.channel_target[up] * 256 + fabric.channel_port[fabric.channel_reverse[up]]
    ends[fabric.channel_source[up], fabric.channel_port[up]] = far
    return ends


def file_to_routes(fabric: Fabric, file: RoutesFile) -> Routes:
    """A routes file (a plan's, or a dump of what is in force) on the indices of `fabric`.

    Destinations and switches that the file does not know have no route (255); those it knows
    and the fabric does not are dropped.
    """
    egress = np.full((len(file.forwarding), fabric.destinations, fabric.switches), 255, np.uint8)
    columns = np.concatenate([file.terminal_guids, file.switch_guids])
    wanted = np.concatenate([fabric.terminal_guid, fabric.switch_guid])
    _, ours_d, theirs_d = np.intersect1d(wanted, columns, assume_unique=True, return_indices=True)
    _, ours_s, theirs_s = np.intersect1d(
        fabric.switch_guid, file.switch_guids, assume_unique=True, return_indices=True
    )
    levels = None if file.service_levels is None else np.zeros_like(egress)
    for offset, table in enumerate(file.forwarding):
        egress[offset][np.ix_(ours_d, ours_s)] = table[np.ix_(theirs_s, theirs_d)].T
        if levels is not None and file.service_levels is not None:
            level = file.service_levels[offset][np.ix_(theirs_s, theirs_d)].T
            levels[offset][np.ix_(ours_d, ours_s)] = level
    hops = None
    if file.hop_lanes is not None:
        wide = int(fabric.switch_ports.max(initial=0)) + 1
        hops, both = np.zeros((fabric.switches, wide, wide), np.uint8), file.hop_lanes[theirs_s]
        both = both[:, :wide, :wide]
        hops[ours_s, : both.shape[1], : both.shape[1]] = both
    return Routes(
        engine=file.engine,
        fabric_digest=file.fabric_digest,
        egress=egress,
        service_level=levels,
        virtual_lanes=file.lanes,
        hop_lane=hops,
    )
