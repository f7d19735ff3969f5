"""Congestion as ORCS counts it (Schneider, Hoefler, Lumsdaine: ORCS, 2009): the number of messages
of a pattern that share a link; the model has no time."""

from sar_lab.research.orcs.congestion import METRICS, Congestion, simulate
from sar_lab.research.orcs.level_schedule import Schedule, schedule_of
from sar_lab.research.orcs.network import Network, network_of_routes

__all__ = [
    "METRICS",
    "Congestion",
    "Network",
    "Schedule",
    "network_of_routes",
    "schedule_of",
    "simulate",
]
