"""What each job met, day by day."""

from sar_agent.config.services import Service

SERVICE = Service(order=30, observer="sar_agent.services.job_days.observer:JobDaysWatch")
