"""What `config check` says of the counters that the settings name."""

from __future__ import annotations

from pathlib import Path

from sar_agent.config.model import Config
from sar_agent.fabric import Fabric
from sar_agent.services.cable_watch.growth import GrowthReader


def counters_line(settings: Config, fabric: Fabric) -> tuple[list[str], list[str]]:
    """What is said, and what is wrong: a file that is there and cannot be read. A server that is
    away now is no problem of the settings, nor is a dump that is yet to come."""
    if not (source := settings.watch.counters):
        return [], []
    reader = GrowthReader(source, settings.watch.window_seconds)
    reader.read(fabric, wait=True)
    line = f"watch.counters: {reader.problem or f'{source} has counters of {fabric.name}'}"
    return ([], [line]) if reader.problem and Path(source).exists() else ([line], [])
