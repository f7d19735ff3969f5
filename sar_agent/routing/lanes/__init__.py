"""Virtual lanes: which packets travel in which, so that no lane's channels wait in a circle."""

from sar_agent.routing.lanes.assign_lanes import REGULAR, lane_budget, lay_lanes
from sar_agent.routing.lanes.routed_engine import relay, routed, with_levels_of

__all__ = ["REGULAR", "lane_budget", "lay_lanes", "relay", "routed", "with_levels_of"]
