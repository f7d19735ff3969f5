"""Counters from a Prometheus server: the series now and one window ago.

Of each counter, its value and the time of its sample are asked for (`timestamp()`), since exporters
are scraped at different times. infiniband_exporter counts bytes; UFM Telemetry exports the counters
themselves, words of 4 bytes, and writes GUIDs without 0x.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sar_agent.counters.readings import MOST_PORTS, WORD, PortReadings, PortTotals, difference
from sar_agent.errors import Unavailable
from sar_agent.util.bounded_http import fetch

Series = Literal["infiniband_exporter", "ufm"]
MOST_BYTES = 256 * 2**20
"""The most bytes of an answer; 70,000 ports are some 20 MB."""


@dataclass(frozen=True)
class SeriesNames:
    """The series of an exporter: names of sent, received and waits for switches and HCAs."""

    sent: tuple[str, ...]
    received: tuple[str, ...]
    waits: tuple[str, ...]
    guid_label: str
    port_label: str
    bytes_each: int


def _of_both(counter: str) -> tuple[str, ...]:
    """infiniband_exporter's series of switches and of HCAs."""
    return tuple(f"infiniband_{node}_port_{counter}_total" for node in ("switch", "hca"))


SERIES: dict[Series, SeriesNames] = {
    "infiniband_exporter": SeriesNames(
        _of_both("transmit_data_bytes"),
        _of_both("receive_data_bytes"),
        _of_both("transmit_wait"),
        "guid",
        "port",
        1,
    ),
    "ufm": SeriesNames(
        ("PortXmitDataExtended",),
        ("PortRcvDataExtended",),
        ("PortXmitWaitExt", "PortXmitWait"),
        "node_guid",
        "port_num",
        WORD,
    ),
}
Port = tuple[int, int]
"""GUID and port number."""


@dataclass(frozen=True)
class PrometheusServer:
    """A server; `deadline` in seconds is that of a whole reading, for messages."""

    url: str
    deadline: float

    def query(self, query: str, at: float, end: float) -> list[dict[str, Any]]:
        """The series of a query at the Unix time `at`; it ends at `end` of `time.monotonic`. Raises
        `Unavailable`."""
        left = end - time.monotonic()
        if left <= 0:
            raise Unavailable(f"{self.url}: Prometheus gave no answer within {self.deadline:g} s")
        try:
            text = fetch(
                f"{self.url}/api/v1/query",
                "Prometheus",
                deadline=left,
                most=MOST_BYTES,
                form={"query": query, "time": f"{at:.3f}"},
            )
            result = json.loads(text)["data"]["result"]
            for entry in result:
                float(entry["value"][1]), dict(entry["metric"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise Unavailable(f"{self.url}: not an answer of Prometheus") from error
        if len(result) > MOST_PORTS:
            raise Unavailable(f"{self.url}: {len(result)} series are more than a subnet has ports")
        return list(result)


class PrometheusCounters:
    """What ports counted, by a server that scrapes them."""

    def __init__(self, url: str, series: Series, window: float, deadline: float) -> None:
        """`window` and `deadline` (of a whole reading) in seconds."""
        self.server, self.names = PrometheusServer(url.rstrip("/"), deadline), SERIES[series]
        self.series, self.window = series, window

    def read(self, at: float) -> PortReadings:
        """The window that ended at the Unix time `at`. Raises `Unavailable`, `WindowLeftOut`."""
        end = time.monotonic() + self.server.deadline
        before = self._totals(at - self.window, end)
        return difference(before, self._totals(at, end), at)

    def _totals(self, at: float, end: float) -> PortTotals:
        sent = self._samples(self.names.sent, at, end)
        times = self._samples(self.names.sent, at, end, "timestamp")
        received = self._samples(self.names.received, at, end)
        waits = self._samples(self.names.waits, at, end)
        ports = [port for port in sent if np.isfinite(times.get(port, np.nan))]
        each = self.names.bytes_each

        def column(values: dict[Port, float], scale: int = 1) -> Any:
            # Prometheus' numbers are float64: exact below 2^53 bytes, rounded to 1 KB at 2^63.
            found = np.array([values.get(port, 0.0) for port in ports], np.float64) * scale
            return np.clip(np.nan_to_num(found), 0, 2.0**63).astype(np.uint64)

        return PortTotals(
            source=f"{self.server.url} ({self.series})",
            guid=np.array([port[0] for port in ports], np.uint64),
            lid=np.zeros(len(ports), np.int32),
            port=np.array([port[1] for port in ports], np.int32),
            sent=column(sent, each),
            received=column(received, each),
            waits=column(waits),
            at=np.array([times[port] for port in ports], np.float64),
        )

    def _samples(
        self, names: tuple[str, ...], at: float, end: float, function: str = ""
    ) -> dict[Port, float]:
        """Value by port, of all series of these names."""
        selector = '{__name__=~"' + "|".join(names) + '"}'
        # timestamp() drops the name, so it is applied to one series at a time.
        queries = [f"timestamp({name})" for name in names] if function else [selector]
        found: dict[Port, float] = {}
        for query in queries:
            for entry in self.server.query(query, at, end):
                port = self._port(entry)
                if port is not None:
                    found[port] = float(entry["value"][1])
        return found

    def _port(self, entry: dict[str, Any]) -> Port | None:
        """None for a series without GUID and port."""
        labels = entry["metric"]
        try:
            guid = int(str(labels[self.names.guid_label]), 16)
            port = int(str(labels[self.names.port_label]))
        except (KeyError, ValueError):
            return None
        return (guid, port) if 0 < guid < 1 << 64 and 0 < port < 256 else None
