"""What the jobs of now would have without sar-agent."""

from sar_agent.config.services import Service

SERVICE = Service(order=10, observer="sar_agent.services.baseline.observer:Baseline")
