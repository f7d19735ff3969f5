"""The page of `sar-agent run`: what is wrong, what is in force, and the traffic of the jobs."""

from sar_agent.services.live_page.pages import LivePages
from sar_agent.services.live_page.snapshot import PageSnapshot, Trouble

__all__ = ["LivePages", "PageSnapshot", "Trouble"]
