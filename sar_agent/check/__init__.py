"""What must hold before routes are installed."""

from sar_agent.check.proof import Proved
from sar_agent.check.senders import senders_proved
from sar_agent.check.verdict import Checked, Verdict, check_changed, check_routes

__all__ = ["Checked", "Proved", "Verdict", "check_changed", "check_routes", "senders_proved"]
