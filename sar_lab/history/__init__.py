"""Job histories: which jobs ran where and when, recorded by a site or synthetic."""

from sar_lab.history.files import read_history
from sar_lab.history.job_history import Change, HistoryBuilder, JobHistory, LeftOut
from sar_lab.history.placed_history import PlacedHistory, place_history

__all__ = [
    "Change",
    "HistoryBuilder",
    "JobHistory",
    "LeftOut",
    "PlacedHistory",
    "place_history",
    "read_history",
]
