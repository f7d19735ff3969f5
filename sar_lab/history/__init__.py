"""Which jobs ran where and when: records of a site, or made up, in one small type."""

from sar_lab.history.files import read_history
from sar_lab.history.model import Change, History, HistoryBuilder, LeftOut
from sar_lab.history.place import Placed, place

__all__ = ["Change", "History", "HistoryBuilder", "LeftOut", "Placed", "place", "read_history"]
