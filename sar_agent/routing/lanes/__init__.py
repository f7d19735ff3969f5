"""Virtual lanes: which packets travel in which lane, so that no lane has a credit loop."""

from sar_agent.routing.lanes.assign_lanes import assign_lanes, lane_budget
from sar_agent.routing.lanes.routed_engine import routed, with_lanes, with_levels_of

__all__ = ["assign_lanes", "lane_budget", "routed", "with_lanes", "with_levels_of"]
