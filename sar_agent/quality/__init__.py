"""The quality of routes: effective EFI, dark fiber, links per job, loads and lower bounds."""

from sar_agent.quality.bounds import Bounds, bounds_of
from sar_agent.quality.measures import JobMeasure, Measures, measure

__all__ = ["Bounds", "JobMeasure", "Measures", "bounds_of", "measure"]
