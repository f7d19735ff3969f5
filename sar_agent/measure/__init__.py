"""Effective EFI, dark fiber, links per job, loads and their lower bounds."""

from sar_agent.measure.measures import JobMeasure, Measures, measure

__all__ = ["JobMeasure", "Measures", "measure"]
