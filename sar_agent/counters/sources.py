"""The sources of counters, as `[counters] source` names them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol

from sar_agent.config.model import Config
from sar_agent.counters.counter_files import FileCounters
from sar_agent.counters.plugin_file import read_counters_file
from sar_agent.counters.prometheus import PrometheusCounters
from sar_agent.counters.readings import PortReadings, WindowLeftOut
from sar_agent.opensm.plugin_client import PluginClient


class CounterSource(Protocol):
    """Reads the last window; it remembers nothing that the reading depends on."""

    def read(self) -> PortReadings:
        """Raises `SarError`: `WindowLeftOut` where there is no good window."""


class PluginCounters:
    """The source `plugin`: OpenSM's PerfMgr. Between its sweeps nothing is copied."""

    def __init__(self, client: PluginClient) -> None:
        self.client = client
        self._last: tuple[str, float, PortReadings] | None = None
        """The last readings, with their identity, and when they were read."""

    def read(self) -> PortReadings:
        """Raises `SarError` where the plugin does not answer or PerfMgr is off."""
        status, now = self.client.status(), time.monotonic()
        identity = f"OpenSM {status.pid}, sweep {status.perfmgr_sweep}"
        if self._last is not None and self._last[0] == identity:
            _, then, readings = self._last
            return replace(readings, age=readings.age + (now - then))
        answer = self.client.counters()
        if not answer.ports:
            raise WindowLeftOut("OpenSM's PerfMgr has read no port yet; wait for its first sweeps")
        readings = read_counters_file(answer.path)
        # While a sweep is under way, the file has most ports as of the sweep before: its identity
        # is not yet that of `status`, and it is read again.
        readings = replace(readings, identity=f"OpenSM {status.pid}, {readings.identity}")
        self._last = readings.identity, now, readings
        return readings


def counter_source(config: Config) -> CounterSource | None:
    """The configured source; None if it is off."""
    counters = config.counters
    match counters.source:
        case "off":
            return None
        case "plugin":
            opensm = config.opensm
            return PluginCounters(PluginClient(opensm.plugin_socket, opensm.load_deadline_seconds))
        case "prometheus":
            return PrometheusCounters(
                counters.prometheus_url, counters.prometheus_series, counters.window_seconds
            )
        case "files":
            return FileCounters(counters.files)
