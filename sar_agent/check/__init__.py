"""What must hold before routes are installed."""

from sar_agent.check.verdict import Verdict, check_routes

__all__ = ["Verdict", "check_routes"]
