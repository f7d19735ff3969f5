"""What `config check` says of the counters that the settings name."""

from __future__ import annotations

from sar_agent.config.model import Config
from sar_agent.fabric import Fabric
from sar_agent.services.cable_watch.growth import GrowthReader


def counters_line(settings: Config, fabric: Fabric) -> list[str]:
    """A server that is away now is no problem of the file, nor is a dump that is yet to come."""
    if not (source := settings.watch.counters):
        return []
    reader = GrowthReader(source, settings.watch.window_seconds)
    reader.read(fabric, wait=True)
    return [f"watch.counters: {reader.problem or f'{source} has counters of {fabric.name}'}"]
