"""A real Prometheus that scrapes itself-made numbers."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from sar_agent.errors import SarError
from sar_lab.live.process import free_port
from sar_lab.live.prometheus import Prometheus

pytestmark = pytest.mark.live

RULES = """
groups:
  - name: g
    rules:
      - alert: TooHigh
        expr: sar_test_value > 6
"""


def test_scrapes_queries_and_alerts(tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    registry = CollectorRegistry()
    gauge = Gauge("sar_test_value", "A value.", ["routes"], registry=registry)
    gauge.labels("planned").set(7)
    port = free_port()
    server, thread = start_http_server(port, "127.0.0.1", registry)
    (tmp_path / "rules.yml").write_text(RULES)
    try:
        with Prometheus([f"127.0.0.1:{port}"], [tmp_path / "rules.yml"]) as prometheus:
            (sample,) = prometheus.wait_for("sar_test_value")
            assert (sample.value, sample.labels["routes"]) == (7.0, "planned")
            (alert,) = prometheus.wait_for('ALERTS{alertname="TooHigh"}')
            assert alert.labels["alertstate"] == "firing"
            assert prometheus.query("scalar(sar_test_value)")[0].value == 7.0
            assert prometheus.query("no_such_metric") == []
            with pytest.raises(SarError, match="parse error"):
                prometheus.query("sum(")
            with pytest.raises(SarError, match="no series for 'no_such_metric'"):
                prometheus.wait_for("no_such_metric", 0.5)
        with pytest.raises(SarError, match="does not answer"):
            prometheus.query("up")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_broken_rule_file_is_said(tmp_path):
    (tmp_path / "rules.yml").write_text("groups: 7\n")
    with (
        pytest.raises(SarError, match="prometheus ended with exit code"),
        Prometheus([], [tmp_path / "rules.yml"]),
    ):
        pass
