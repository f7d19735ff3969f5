"""Watches cables: which are bad now, since when, and which running jobs they hurt."""

from sar_agent.config.services import Service

SERVICE = Service(
    order=20,
    observer="sar_agent.services.cable_watch.observer:CableObserver",
    check="sar_agent.services.cable_watch.check:counters_line",
)
