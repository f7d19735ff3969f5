"""What ports have counted: windows of counters, and how they compare with the predicted loads."""

from sar_agent.counters.compare import Comparison, compare
from sar_agent.counters.readings import PortReadings, WindowLeftOut
from sar_agent.counters.window import CounterWindow, align

__all__ = ["Comparison", "CounterWindow", "PortReadings", "WindowLeftOut", "align", "compare"]
