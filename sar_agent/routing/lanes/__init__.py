"""Virtual lanes: which packets travel in which lane, so that no lane has a credit loop.

One lane is preferred where it costs at most 2 % of the largest load. Lanes are assigned path by
path, and only where the check of a plan has found that one lane is not enough. With more than one,
traffic to a leaf switch itself follows the traffic to one of its hosts, and so adds no dependency.
"""

from sar_agent.routing.lanes.assign_lanes import assign_lanes, lane_budget
from sar_agent.routing.lanes.routed_engine import routed, with_lanes, with_levels_of

__all__ = ["assign_lanes", "lane_budget", "routed", "with_lanes", "with_levels_of"]
