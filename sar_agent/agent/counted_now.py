"""Counters beside the present jobs, once, for a command."""

from __future__ import annotations

from sar_agent.agent.observe_site import Observation
from sar_agent.config.model import Config
from sar_agent.counters import Comparison, CounterWindow, WindowLeftOut, align, compare
from sar_agent.counters.sources import counter_source
from sar_agent.errors import InputError
from sar_agent.quality.channel_traffic import traffic_of


def counted_now(config: Config, site: Observation) -> tuple[Comparison, CounterWindow]:
    """The last window beside the present routes and jobs, for one-shot commands: assume that these
    ran during all of it. Raises
    `InputError` where no source is configured, `SarError` where there is no good window."""
    settings = config.counters
    source = counter_source(config)
    if source is None:
        raise InputError(
            "no counters are read", remedy='set counters.source = "plugin", "prometheus" or "files"'
        )
    if site.in_force is None:
        raise WindowLeftOut("the routes in force are not known, so no load is predicted")
    window = align(site.fabric, source.read())
    traffic = traffic_of(site.fabric, site.mix, site.in_force.routes)
    comparison = compare(
        site.fabric,
        window,
        traffic.load,
        traffic,
        hot_load=settings.hot_load,
        hot_factor=settings.hot_factor,
    )
    return comparison, window
