"""How old the sources of the running agent are, by its own metrics: for `status`, a process of its
own that reads no source."""

from __future__ import annotations

from contextlib import suppress

from prometheus_client.parser import text_string_to_metric_families

from sar_agent.agent.source_ages import SourceAge
from sar_agent.config.types import host_port
from sar_agent.errors import Unavailable
from sar_agent.util.bounded_http import fetch

SECONDS, MOST_BYTES = 3.0, 16 * 2**20
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""An address to listen at, and one to ask."""


def ages_of_running(address: str) -> dict[str, SourceAge]:
    """By source; empty where no agent answers at `agent.metrics_address`. `stale` says only that
    it is: the page and the log have the reason."""
    if not address:
        return {}
    host, port = host_port(address)
    host = _EVERY.get(host, host)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
    found = dict[str, SourceAge]()
    with suppress(Unavailable, ValueError, KeyError):
        text = fetch(url, "the agent", deadline=SECONDS, most=MOST_BYTES).decode()
        values: dict[str, dict[str, float]] = {"timestamp_seconds": {}, "stale": {}}
        for family in text_string_to_metric_families(text):
            if (kind := family.name.removeprefix("sar_agent_source_")) in values:
                values[kind] = {s.labels["source"]: float(s.value) for s in family.samples}
        for source, at in values["timestamp_seconds"].items():
            stale = "stale; the page and the log say why" if values["stale"].get(source) else ""
            found[source] = SourceAge(at, stale)
    return found
