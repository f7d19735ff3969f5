"""Writes how old the sources are, for `status`."""

from sar_agent.config.services import Service

SERVICE = Service(order=50, observer="sar_agent.services.ages.observer:AgesObserver")
