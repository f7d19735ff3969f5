"""Runs an engine and gives its routes virtual lanes where they need them."""

from __future__ import annotations

from dataclasses import replace

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Engine, Options
from sar_agent.routing.lanes.assign_lanes import assign_lanes, follow_hosts, lane_budget
from sar_agent.routing.repair import same_indices
from sar_agent.routing.routes import Routes


def routed(engine: Engine, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
    """Routes without a credit loop between hosts. Raises `Unserved`."""
    return with_lanes(engine.route(fabric, mix, options), fabric, mix, options)


def with_lanes(routes: Routes, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
    """These routes with lanes. Routes whose engine assigned lanes itself are returned as they are.
    Raises `Unserved`."""
    if routes.virtual_lanes > 1:
        return routes
    return assign_lanes(fabric, routes, options, mix)


def with_levels_of(
    before: Routes, made_for: Fabric, routes: Routes, fabric: Fabric, options: Options
) -> Routes | None:
    """`routes` with the lanes of the routes `before`, which may still do; None where these had no
    lanes, are of other nodes, or have more lanes than are allowed now."""
    if routes.virtual_lanes > 1 or before.virtual_lanes == 1:
        return None
    if before.virtual_lanes > lane_budget(fabric, options):
        return None
    if before.egress.shape != routes.egress.shape or not same_indices(made_for, fabric):
        return None
    levels, lanes = before.service_level, before.virtual_lanes
    if before.hop_lane is not None:
        return replace(routes, hop_lane=before.hop_lane, virtual_lanes=lanes)
    return follow_hosts(fabric, replace(routes, service_level=levels, virtual_lanes=lanes))
