"""The page of `sar-agent run`: what is wrong, what is in force, and the traffic of the jobs."""

from sar_agent.config.services import Service

SERVICE = Service(
    order=40,
    observer="sar_agent.services.live_page.observer:PageFeed",
    quiet="sar_agent.services.live_page.quiet_page:QuietPage",
)
