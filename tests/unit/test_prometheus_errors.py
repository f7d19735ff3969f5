"""Errors of ports that Prometheus keeps, against a stand-in for its answers."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sar_agent.counters import prometheus_errors as module
from sar_agent.counters.prometheus_errors import (
    PrometheusTime,
    prometheus_errors,
    prometheus_time,
)
from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric.spec import load_fabric

TREE = load_fabric("xgft:2;4,4;1,2")
GUID = f"{TREE.switch_guid[0]:#x}"


@contextmanager
def serving(series: list[tuple[dict[str, str], str]], seconds: float = 0.0) -> Iterator[str]:
    """Answers each query with these series and values, after some seconds."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(seconds)
            result = [{"metric": labels, "value": [0, value]} for labels, value in series]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": {"result": result}}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def node(name: str, instance: str, device: str = "mlx5_0") -> dict[str, str]:
    labels = {"instance": instance, "device": device, "port": "1"}
    return {"__name__": f"node_infiniband_{name}_total", **labels}


def test_ports_of_three_exporters() -> None:
    fabric_wide = {"__name__": "infiniband_switch_port_symbol_error_total", "guid": GUID}
    ufm = {"__name__": "LinkDownedCounterExtended", "node_guid": GUID[2:], "port_num": "5"}
    series = [
        (fabric_wide | {"port": "5"}, "14"),
        (fabric_wide | {"port": "5", "job": "again"}, "13"),
        (fabric_wide | {"port": "6"}, "0"),
        (ufm, "2"),
        (node("link_downed", "n003:9100"), "1"),
        (node("port_errors_received", "N004.cluster.org:9100"), "7"),
        (node("port_discards_transmitted", "10.0.0.5:9100") | {"host": "n004"}, "3"),
        (node("symbol_error", "10.0.0.6:9100"), "9"),
        (node("symbol_error", "n004:9100"), "NaN"),
    ]
    with serving(series) as url:
        found = prometheus_errors(PrometheusTime(url, 1000.0), TREE)
    third, fourth = (int(TREE.terminal_guid[t]) for t in (2, 3))
    assert found.counts == {
        (int(GUID, 16), 0, 5): {"symbol_errors": 14, "link_downed": 2},
        (third, 0, 1): {"link_downed": 1},
        (fourth, 0, 1): {"receive_errors": 7, "discards": 3},
    }
    assert found.time == 1000.0
    shown = "device mlx5_0, instance 10.0.0.6:9100, port 1"
    assert found.notes == (f"{url}: 1 series name no host of the fabric, such as {shown}",)


def test_of_a_host_with_two_hcas_the_device_tells_which() -> None:
    names = list(TREE.terminal_host)
    names[1] = names[0]
    two = ("n001 mlx5_0", "n001 mlx5_1")
    fabric = replace(
        TREE,
        terminal_host=tuple(names),
        terminal_description=(*two, *TREE.terminal_description[2:]),
    )
    series = [(node("link_downed", "n001", f"mlx5_{n}"), str(n + 4)) for n in (0, 1, 2)]
    with serving(series) as url:
        found = prometheus_errors(PrometheusTime(url, 0.0), fabric)
    assert [*found.counts.values()] == [{"link_downed": 4}, {"link_downed": 5}]
    assert len(found.notes) == 1


def test_what_goes_wrong_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving([]) as url, pytest.raises(InputError, match="no error counters of InfiniBand"):
        prometheus_errors(PrometheusTime(url, 0.0), TREE)
    other = {"__name__": "LinkDownedCounterExtended", "node_guid": "77", "port_num": "5"}
    with serving([(other, "1"), (node("link_downed", "gpu7:9100"), "1")]) as url:
        found = prometheus_errors(PrometheusTime(url, 0.0), TREE)
    assert (
        "1 series name no host of the fabric, such as device mlx5_0, instance gpu7"
        in found.notes[0]
    )
    with pytest.raises(InputError, match=f"{url} has no port of {TREE.name}"):
        found.of(TREE)
    with pytest.raises(Unavailable, match="cannot be asked"):
        prometheus_errors(PrometheusTime("http://127.0.0.1:x", 0.0), TREE)
    monkeypatch.setattr(module, "SECONDS", 0.3)
    with (
        serving([], 2.0) as url,
        pytest.raises(Unavailable, match=r"no whole answer within 0\.3 s"),
    ):
        prometheus_errors(PrometheusTime(url, 0.0), TREE)


def test_an_address_may_have_a_time() -> None:
    at = time.mktime((2026, 11, 20, 8, 0, 0, 0, 0, -1))
    assert prometheus_time("http://p:9090/?time=2026-11-20T08:00") == ("http://p:9090", at)
    assert prometheus_time("https://p/x?time=1700000000") == ("https://p/x", 1.7e9)
    now = prometheus_time("http://p")
    assert now and abs(now.at - time.time()) < 60
    assert prometheus_time("before.db_csv") is None
    for query in ("time=yesterday", "time=", "at=5", "time=1&time=2", "time=1&x=2"):
        with pytest.raises(InputError, match="names no time"):
            prometheus_time(f"http://p?{query}")
