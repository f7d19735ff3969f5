"""What a site copies: units, alert rules, dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sar_agent.agent.decide import Reason
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from sar_agent.telemetry.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus/sar-agent.rules.yml"
BOARD = DEPLOY / "grafana/sar-agent.json"
_NAME = re.compile(r"\bsar_\w+")


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Of all series that the agent can show."""
    metrics = Metrics("0", "install", "sar")
    fabric = load_fabric("xgft:2;4,4;1,2")
    mix = synthetic_mix(fabric, 1)
    metrics.show_measures(
        "in_force", measure(fabric, mix, load_engine("sar").route(fabric, mix, Options()))
    )
    with metrics.timed("route"):
        pass
    metrics.reroutes.labels(Reason.FIRST.value, "installed").inc()
    metrics.expect_messages(["start"])
    text = generate_latest(metrics.registry).decode()
    return {s.name for family in text_string_to_metric_families(text) for s in family.samples}


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def board_queries() -> Iterator[str]:
    board = json.loads(BOARD.read_text())
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (one["expr"] for one in board["annotations"]["list"])


def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(
        [tool("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "13 rules found" in done.stdout


ALERTS = {
    # alert: (series with values a minute apart, when it must have fired)
    "SarAgentDown": ({'up{job="sar-agent"}': "0x20"}, "6m"),
    "SarRoutesNotInForce": (
        {
            "sar_install_mode": "1x20",
            'sar_engine_in_force{engine="sar"}': "0x20",
            'sar_engine_in_force{engine="dfsssp"}': "1x20",
        },
        "6m",
    ),
    "SarGenerationDiffers": (
        {
            "sar_install_mode": "1x20",
            "sar_generation_installed": "7x20",
            "sar_generation_in_force": "6x20",
        },
        "6m",
    ),
    "SarSlurmUnreachable": ({"sar_slurm_reachable": "0x20"}, "11m"),
    "SarSubnetManagerUnreachable": ({"sar_sm_reachable": "0x20", "sar_install_mode": "1x20"}, "6m"),
    "SarNoSuccess": ({"sar_last_success_timestamp_seconds": "1x120"}, "65m"),
    "SarPlansFailCheck": ({"sar_check_failures_total": "0 0 1x20"}, "5m"),
    "SarUnknownHosts": ({"sar_unknown_hosts": "11x60"}, "31m"),
    "SarKeysFail": ({'sar_key_installs_total{result="failed"}': "0 0 1x20"}, "5m"),
    "SarUpdateStuck": ({"sar_update_phase": "2x20"}, "11m"),
    "SarEventsRefused": ({'sar_events_refused_total{reason="credential"}': "0+10x60"}, "20m"),
    "SarPeerStale": (
        {"sar_standby_configured": "1x20", "sar_peer_answered_timestamp_seconds": "2x20"},
        "6m",
    ),
    "SarUnexpectedErrors": ({'sar_unexpected_errors_total{where="pass"}': "0 0 1x20"}, "5m"),
}
QUIET = {
    "sar_standby_configured": "1x120",
    "sar_peer_answered_timestamp_seconds": "0+60x120",
    'up{job="sar-agent"}': "1x120",
    "sar_install_mode": "1x120",
    'sar_engine_in_force{engine="sar"}': "1x120",
    'sar_engine_in_force{engine="dfsssp"}': "0x120",
    "sar_generation_installed": "7x120",
    "sar_generation_in_force": "7x120",
    "sar_slurm_reachable": "1x120",
    "sar_sm_reachable": "1x120",
    "sar_last_success_timestamp_seconds": "0+60x120",
    "sar_check_failures_total": "3x120",
    "sar_unknown_hosts": "2x120",
    'sar_key_installs_total{result="failed"}': "3x120",
    "sar_update_phase": "0x120",
    'sar_events_refused_total{reason="credential"}': "0+2x120",
    'sar_unexpected_errors_total{where="pass"}': "3x120",
}


def test_each_alert_fires_when_it_should_and_alone(tmp_path: Path) -> None:
    tests = [_case(QUIET, "90m", None)]
    tests += [_case(QUIET | series, at, name) for name, (series, at) in ALERTS.items()]
    observing = {"sar_install_mode": "0x120", 'sar_engine_in_force{engine="sar"}': "0x120"}
    tests.append(_case(QUIET | observing, "90m", None))
    file = tmp_path / "test.yml"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": tests}))
    done = subprocess.run(
        [tool("promtool"), "test", "rules", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _case(series: dict[str, str], at: str, fired: str | None) -> dict[str, Any]:
    def labelled(name: str) -> str:
        base, _, rest = name.partition("{")
        return base + '{instance="a"' + ("," + rest if rest else "}")

    query = 'sort(count by (alertname) (ALERTS{alertstate="firing"}))'
    sample = {"labels": f'{{alertname="{fired}"}}', "value": 1}
    return {
        "interval": "1m",
        "input_series": [{"series": labelled(k), "values": v} for k, v in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": at, "exp_samples": [sample] if fired else []}
        ],
    }


def test_alerts_and_dashboard_ask_for_series_that_exist(names: set[str]) -> None:
    rules = RULES.read_text()
    asked = {name for line in rules.splitlines() if "expr:" in line for name in _NAME.findall(line)}
    assert asked and asked <= names
    queries = list(board_queries())
    assert len(queries) > 20
    for query in queries:
        assert set(_NAME.findall(query)) <= names, query


def test_the_first_screen_answers_the_first_questions() -> None:
    board = json.loads(BOARD.read_text())
    top = [
        target["expr"]
        for panel in board["panels"]
        if panel["gridPos"]["y"] + panel["gridPos"]["h"] <= 19
        for target in panel.get("targets", ())
    ]
    for metric in (
        "sar_engine_in_force",
        "sar_generation_installed",
        "sar_dark_fiber_ratio",
        "sar_effective_efi_max",
        "sar_multi_switch_jobs",
        "sar_reroutes_total",
        "sar_stage_last_seconds",
        "sar_last_success_timestamp_seconds",
        "sar_slurm_reachable",
        "sar_sm_reachable",
    ):
        assert any(metric in query for query in top), metric


def test_the_dashboard_opens_with_its_datasource_variable() -> None:
    board = json.loads(BOARD.read_text())
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"

    def sources(node: Any) -> Iterator[Any]:
        if isinstance(node, dict):
            yield from (v for k, v in node.items() if k == "datasource")
            for child in node.values():
                yield from sources(child)
        elif isinstance(node, list):
            for child in node:
                yield from sources(child)

    found = list(sources(board))
    assert found and all(one == {"type": "prometheus", "uid": "${datasource}"} for one in found)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    spots = [
        {
            (x, y)
            for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
            for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])
        }
        for p in board["panels"]
    ]
    assert len(set.union(*spots)) == sum(map(len, spots)), "panels overlap"


def test_the_unit_is_accepted_and_hardened(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd/sar-agent.service").read_text()
    start = re.search(r"^ExecStart=(\S+) (.*)$", text, re.MULTILINE)
    assert start is not None
    assert start[2] == "run --config /etc/sar-agent.toml"
    assert f"\nExecStartPre={start[1]} warm-up --config /etc/sar-agent.toml\n" in text
    unit = tmp_path / "sar-agent.service"
    unit.write_text(text.replace(start[1], sys.executable))  # /opt is not there in a test
    analyze = tool("systemd-analyze")
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "sar-agent" in line]
    assert (done.returncode, ours) == (0, [])
    for wanted in (
        *("Type=notify", "WatchdogSec=", "NoNewPrivileges=yes", "ProtectSystem=strict"),
        *("MemoryMax=", "OOMScoreAdjust=500", "DevicePolicy=closed"),
    ):
        assert f"\n{wanted}" in text
    folders = dict(re.findall(r"^(State|Cache|Runtime)Directory=(\S+)$", text, re.MULTILINE))
    assert folders == dict.fromkeys(("State", "Cache", "Runtime"), "sar-agent")


def test_only_observing_may_open_umad() -> None:
    """Whoever may write there may change all of the fabric."""
    unit = (DEPLOY / "systemd/sar-agent.service").read_text()
    assert "\nDeviceAllow=" not in unit
    more = (DEPLOY / "systemd/sar-agent.service.d/ibnetdiscover.conf").read_text()
    assert "\n[Service]\nDeviceAllow=char-infiniband_mad rw\n" in more
    rules = (DEPLOY / "udev/70-sar-agent.rules").read_text()
    for text in (more, rules):
        assert "observe mode" in text and "may change all of the fabric" in text


def test_users_and_folders_are_those_of_the_unit() -> None:
    assert re.search(r"^u\s+sar-agent\s", (DEPLOY / "sysusers.d/sar-agent.conf").read_text(), re.M)
    folders = re.findall(
        r"^d\s+(\S+)\s+\S+\s+sar-agent", (DEPLOY / "tmpfiles.d/sar-agent.conf").read_text(), re.M
    )
    assert folders == ["/run/sar-agent", "/var/lib/sar-agent", "/var/cache/sar-agent"]


def test_the_cron_line_has_a_user_and_runs_once() -> None:
    lines = [
        line
        for line in (DEPLOY / "cron/sar-agent").read_text().splitlines()
        if line and not line.startswith("#") and "=" not in line.split()[0]
    ]
    assert len(lines) == 1
    fields = lines[0].split()
    assert fields[5] == "sar-agent" and fields[7:9] == ["once", "--config"]
