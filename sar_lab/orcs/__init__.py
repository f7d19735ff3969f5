"""Congestion as ORCS counts it (Schneider, Hoefler, Lumsdaine: ORCS, 2009): how many messages of a
pattern share a link, without time."""

from sar_lab.orcs.metrics import METRICS, Congestion, simulate
from sar_lab.orcs.network import Network, network_of_routes
from sar_lab.orcs.schedule import Schedule, schedule_of

__all__ = [
    "METRICS",
    "Congestion",
    "Network",
    "Schedule",
    "network_of_routes",
    "schedule_of",
    "simulate",
]
