"""The quality of routes: effective EFI, dark fiber, loads with bounds, phase contention."""

from sar_agent.quality.bounds import Bounds, bounds_of
from sar_agent.quality.measures import JobMeasure, Measures, measure

__all__ = ["Bounds", "JobMeasure", "Measures", "bounds_of", "measure"]
