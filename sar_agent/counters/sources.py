"""Where a window of counters comes from: files, or a Prometheus server."""

from __future__ import annotations

from collections.abc import Sequence

from sar_agent.counters.counter_files import read_window
from sar_agent.counters.prometheus_errors import prometheus_time, prometheus_window
from sar_agent.counters.readings import PortReadings


def window_of(sources: Sequence[str], seconds: float | None = None) -> PortReadings | None:
    """The window of one or two names of files or addresses of servers, the earlier one first; None
    where they are none: a single dump, or a file and a server. `seconds`: the length of a window of
    files; None takes it from them. Raises `Unavailable`, `InputError` and `WindowLeftOut`."""
    places = [prometheus_time(text) for text in sources]
    servers = [place for place in places if place]
    if len(servers) == len(sources):
        return prometheus_window(servers)
    return None if servers else read_window(sources, seconds)
