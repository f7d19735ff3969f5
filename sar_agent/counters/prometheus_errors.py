"""Errors that ports have counted, from a Prometheus server, now or at an earlier time.

Three exporters are known by the names of their series: infiniband_exporter and UFM Telemetry name
ports by GUID; node_exporter counts on the hosts and names an HCA and a port of an `instance`. What
links carried is taken from the first two (`prometheus.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple
from urllib.parse import parse_qs

from sar_agent.counters.counter_files import Place
from sar_agent.counters.port_errors import PortErrors, port_words, went_back
from sar_agent.counters.prometheus import SERIES, PrometheusCounters, PrometheusServer
from sar_agent.counters.readings import PortReadings, WindowLeftOut
from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric import Fabric

SECONDS, WINDOW = 30.0, 180.0
"""For all answers to a reading, and the length of a window that ends at one time."""
_SERIES = {
    f"{begin}{name}{end}": ours
    for ours, of_fabric, of_host, of_ufm in (
        ("link_downed", "link_downed", "link_downed", "LinkDownedCounter"),
        (
            "link_recoveries",
            "link_error_recovery",
            "link_error_recovery",
            "LinkErrorRecoveryCounter",
        ),
        ("symbol_errors", "symbol_error", "symbol_error", "SymbolErrorCounter"),
        ("receive_errors", "receive_errors", "port_errors_received", "PortRcvErrors"),
        ("discards", "transmit_discards", "port_discards_transmitted", "PortXmitDiscards"),
    )
    for begin, name, end in (
        ("infiniband_switch_port_", of_fabric, "_total"),
        ("infiniband_hca_port_", of_fabric, "_total"),
        ("node_infiniband_", of_host, "_total"),
        ("", of_ufm, "Extended"),
    )
}
"""Names of infiniband_exporter, node_exporter and UFM Telemetry, and ours."""
_HOSTS = ("instance", "host", "hostname", "nodename", "node")
"""Labels that may hold a host's name."""
_LABELS = {*_HOSTS, "guid", "node_guid", "port", "port_num", "device"}


class PrometheusTime(NamedTuple):
    """A server, and the Unix time to ask for."""

    url: str
    at: float


def prometheus_time(text: str) -> PrometheusTime | None:
    """The server and time of `http://host:9090?time=2026-11-20T08:00`; now without a time. None for
    the name of a file. Raises `InputError`."""
    if not text.startswith(("http://", "https://")):
        return None
    url, _, query = text.partition("?")
    given = parse_qs(query)
    if not query:
        return PrometheusTime(url.rstrip("/"), time.time())
    with suppress(ValueError, OverflowError, KeyError):
        (when,) = given.pop("time")
        if not given:
            at = float(when) if when.isdecimal() else datetime.fromisoformat(when).timestamp()
            return PrometheusTime(url.rstrip("/"), at)
    raise InputError(
        f"{text} names no time", remedy=f"write {url}?time=2026-11-20T08:00, or no time for now"
    )


def prometheus_errors(place: PrometheusTime, fabric: Fabric) -> PortErrors:
    """The errors of ports of the fabric. Raises `Unavailable`, and `InputError` where the server
    has no such series, or none of this fabric."""
    server = PrometheusServer(place.url, SECONDS)
    query = '{__name__=~"' + "|".join(_SERIES) + '"}'
    found = server.query(query, place.at, time.monotonic() + SECONDS)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(place.at))
    if not found:
        raise InputError(
            f"{place.url} has no error counters of InfiniBand ports for {when}",
            remedy="it must scrape infiniband_exporter, UFM Telemetry or node_exporter, and still "
            "keep that time",
        )
    strange = list[str]()
    counts = _by_port(((e["metric"], float(e["value"][1])) for e in found), fabric, strange)
    return PortErrors(place.url, counts, _strange_note(place.url, strange), place.at)


def prometheus_grown(place: PrometheusTime, seconds: float, fabric: Fabric) -> PortErrors:
    """What ports of the fabric added in so many seconds before `place.at`, series by series: one
    that is lower now was cleared and counts whole, one that is new has no window yet. Where two
    exporters count a port, the larger number counts, and a note says that they disagree. Raises
    `Unavailable`, and `InputError` where the server has no such series."""
    server, end = PrometheusServer(place.url, SECONDS), time.monotonic() + SECONDS
    query = '{__name__=~"' + "|".join(_SERIES) + '"}'
    # An instant query gives a series that is not scraped any more for five minutes: its sample
    # would be the same at both times, as that of a port without errors is. `timestamp` is asked of
    # what links carried, and the age of that window is said.
    now, then = (
        {frozenset(e["metric"].items()): float(e["value"][1]) for e in server.query(query, at, end)}
        for at in (place.at, place.at - seconds)
    )
    if not now:
        raise InputError(
            f"{place.url} has no error counters of InfiniBand ports now",
            remedy="it must scrape infiniband_exporter, UFM Telemetry or node_exporter, and its "
            "clock must be this machine's",
        )
    if not now.keys() & then.keys():
        raise Unavailable(
            f"{place.url} has no counters of {seconds:.0f} s ago yet; wait for the next window"
        )
    grown = [
        (dict(labels), value - then[labels] if value >= then[labels] else value)
        for labels, value in now.items()
        if labels in then
    ]
    back = [
        ", ".join(f"{name} {text}" for name, text in sorted(labels))
        for labels, value in now.items()
        if value < then.get(labels, value)
    ]
    strange, unlike = list[str](), list[str]()
    counts = _by_port(grown, fabric, strange, unlike)
    notes = [*_strange_note(place.url, strange), *went_back(place.url, back)]
    if unlike:
        notes.append(f"{place.url}: exporters disagree on {len(unlike)} counters: {unlike[0]}")
    return PortErrors(place.url, counts, tuple(notes), place.at).of(fabric)


def _by_port(
    series: Iterable[tuple[Mapping[str, str], float]],
    fabric: Fabric,
    strange: list[str],
    unlike: list[str] | None = None,
) -> dict[Place, dict[str, int]]:
    """Counts above 0; `strange` gets the labels of series without a port of the fabric, `unlike`
    what two series of a port disagree on."""
    all_counts: dict[Place, dict[str, int]] = {}
    for labels, count in series:
        port = _port(labels, fabric)
        if port is None:
            strange.append(", ".join(f"{k} {labels[k]}" for k in sorted(labels) if k in _LABELS))
            continue
        of, name = all_counts.setdefault(port, {}), _SERIES[labels["__name__"]]
        value = int(count) if 1 <= count < 2**64 else 0
        before = of.get(name, value)  # a port that two jobs scrape counts once
        if unlike is not None and before != value:
            where = port_words(port)
            unlike.append(f"{name.replace('_', ' ')} of {where}: {before} and {value}")
        of[name] = max(before, value)
    return {
        port: above
        for port, counts in all_counts.items()
        if (above := {name: count for name, count in counts.items() if count})
    }


def _strange_note(url: str, strange: Sequence[str]) -> tuple[str, ...]:
    if not strange:
        return ()
    return (f"{url}: {len(strange)} series name no host of the fabric, such as {strange[0]}",)


def prometheus_window(places: list[PrometheusTime]) -> PortReadings | None:
    """What was carried between two times, or in the last minutes before one; None where the server
    has no series of that. Raises `Unavailable` and `WindowLeftOut`."""
    first, last = places[0], places[-1]
    seconds = last.at - first.at if len(places) > 1 else WINDOW
    for series in SERIES:
        with suppress(WindowLeftOut):
            counters = PrometheusCounters(last.url, series, seconds, SECONDS)
            return counters.read(last.at)
    return None


def _port(labels: Mapping[str, str], fabric: Fabric) -> Place | None:
    """None where the labels name no GUID, and no port of one host of the fabric."""
    with suppress(KeyError, ValueError):
        port = int(labels.get("port") or labels["port_num"])
        if guid := labels.get("guid") or labels.get("node_guid"):
            return int(guid, 16), 0, port
        hosts = (labels.get(name, "").rsplit(":", 1)[0] for name in _HOSTS)
        ports = next(filter(None, map(fabric.hosts.get, hosts)), ())
        of_port = [t for t in ports if fabric.terminal_port_number[t] == port]
        device = [t for t in of_port if labels["device"] in fabric.terminal_description[t].split()]
        if len(chosen := device if len(of_port) > 1 else of_port) == 1:
            return int(fabric.terminal_guid[chosen[0]]), 0, port
    return None
