"""Files that a site copies: units, alert rules, dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus/sar-agent.rules.yml"
BOARD = DEPLOY / "grafana/sar-agent.json"


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def promtool_passes(tests: list[dict[str, Any]], folder: Path, rules: list[str]) -> None:
    file = folder / "test.yml"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": rules, "tests": tests}))
    done = subprocess.run(
        [tool("promtool"), "test", "rules", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(
        [tool("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "23 rules found" in done.stdout


CONTENTION = 'sar_agent_collective_contention_mean{{collective="pairwise",routes="{}"}}'
ALERTS = {
    # alert: (series with values a minute apart, when it must have fired)
    "SarAgentDown": ({'up{job="sar-agent"}': "0x20"}, "6m"),
    "SarRoutesNotInForce": (
        {
            "sar_agent_install_mode": "1x20",
            'sar_agent_engine_in_force{engine="sar"}': "0x20",
            'sar_agent_engine_in_force{engine="dfsssp"}': "1x20",
        },
        "6m",
    ),
    "SarGenerationDiffers": (
        {
            "sar_agent_install_mode": "1x20",
            "sar_agent_generation_installed": "7x20",
            "sar_agent_generation_in_force": "6x20",
        },
        "6m",
    ),
    "SarSlurmUnreachable": ({"sar_agent_slurm_reachable": "0x20"}, "11m"),
    "SarSubnetManagerUnreachable": (
        {"sar_agent_sm_reachable": "0x20", "sar_agent_install_mode": "1x20"},
        "6m",
    ),
    "SarNoSuccess": ({"sar_agent_last_success_timestamp_seconds": "1x120"}, "65m"),
    "SarPlansFailCheck": ({"sar_agent_check_failures_total": "0 0 1x20"}, "5m"),
    "SarUnknownHosts": ({"sar_agent_unknown_hosts": "11x60"}, "31m"),
    "SarKeysFail": ({'sar_agent_key_installs_total{result="failed"}': "0 0 1x20"}, "5m"),
    "SarUpdateStuck": ({"sar_agent_update_phase": "2x20"}, "11m"),
    "SarEventsRefused": ({'sar_agent_events_refused_total{reason="credential"}': "0+10x60"}, "20m"),
    "SarHoldForgotten": ({"sar_agent_rollback_hold": "1x1600"}, "1500m"),
    "SarFabricStale": ({"sar_agent_fabric_read_timestamp_seconds": "60x200"}, "127m"),
    "SarDumpOutdated": ({"sar_agent_dump_outdated": "1x60"}, "31m"),
    "SarKeysLost": ({"sar_agent_keys_lost": "1x60"}, "16m"),
    "SarPeerStale": (
        {
            "sar_agent_standby_configured": "1x20",
            "sar_agent_standby": "0x20",
            "sar_agent_peer_copied_timestamp_seconds": "2x20",
        },
        "12m",
    ),
    "SarCableBad": ({'sar_agent_bad_cables_with_jobs{kind="flapping"}': "0 1x20"}, "3m"),
    "SarLinkWaits": ({"sar_agent_link_lost_ratio_max": "0.5x60"}, "16m"),
    "SarUnknownTerminals": ({"sar_agent_unknown_terminals": "3x20"}, "3m"),
    "SarRepairsRefused": ({"sar_agent_repairs_refused": "2x40 3x40"}, "45m"),
    "SarTimeLost": (
        {
            CONTENTION.format("in_force"): "1.5x1700",
            CONTENTION.format("baseline"): "1.4x1700",
            "sar_agent_install_mode": "1x1700",
        },
        "1520m",
    ),
    "SarSourceStale": ({'sar_agent_source_stale{source="jobs"}': "1x60"}, "16m"),
    "SarUnexpectedErrors": ({'sar_agent_unexpected_errors_total{where="pass"}': "0 0 1x20"}, "5m"),
}
QUIET = {
    "sar_agent_standby_configured": "1x120",
    "sar_agent_standby": "0x120",
    "sar_agent_peer_copied_timestamp_seconds": "0+60x120",
    'up{job="sar-agent"}': "1x120",
    "sar_agent_install_mode": "1x120",
    'sar_agent_engine_in_force{engine="sar"}': "1x120",
    'sar_agent_engine_in_force{engine="dfsssp"}': "0x120",
    "sar_agent_generation_installed": "7x120",
    "sar_agent_generation_in_force": "7x120",
    "sar_agent_slurm_reachable": "1x120",
    "sar_agent_sm_reachable": "1x120",
    "sar_agent_last_success_timestamp_seconds": "0+60x1600",
    "sar_agent_check_failures_total": "3x120",
    "sar_agent_unknown_hosts": "2x120",
    "sar_agent_rollback_hold": "0x120",
    "sar_agent_fabric_read_timestamp_seconds": "0+60x1600",
    "sar_agent_keys_lost": "0x120",
    "sar_agent_dump_outdated": "0x120",
    'process_start_time_seconds{job="sar-agent"}': "0x1600",
    'sar_agent_key_installs_total{result="failed"}': "3x120",
    "sar_agent_update_phase": "0x120",
    'sar_agent_events_refused_total{reason="credential"}': "0+2x120",
    'sar_agent_unexpected_errors_total{where="pass"}': "3x120",
    'sar_agent_bad_cables_with_jobs{kind="flapping"}': "0x120",
    'sar_agent_bad_cables_with_jobs{kind="unlike"}': "7x120",
    "sar_agent_link_lost_ratio_max": "0.1x120",
    "sar_agent_unknown_terminals": "0x120",
    "sar_agent_repairs_refused": "2x120",
    CONTENTION.format("in_force"): "1.2x1700",
    CONTENTION.format("baseline"): "1.4x1700",
    'sar_agent_source_stale{source="jobs"}': "0x120",
    'sar_agent_source_stale{source="tables"}': "1x120",
}


def test_each_alert_fires_when_it_should_and_alone(tmp_path: Path) -> None:
    tests = [_case(QUIET, "90m", None)]
    tests += [_case(QUIET | series, at, name) for name, (series, at) in ALERTS.items()]
    # A fresh start: no pass has ended, nothing has been read.
    fresh = {
        "sar_agent_last_success_timestamp_seconds": "0x1600",
        "sar_agent_fabric_read_timestamp_seconds": "0x1600",
        'process_start_time_seconds{job="sar-agent"}': "3000x1600",
    }
    tests.append(_case(QUIET | fresh, "100m", None))
    tests.append(_case(QUIET | fresh, "115m", "SarNoSuccess"))
    observing = {
        "sar_agent_install_mode": "0x120",
        'sar_agent_engine_in_force{engine="sar"}': "0x120",
    }
    tests.append(_case(QUIET | observing, "90m", None))
    promtool_passes(tests, tmp_path, [str(RULES)])


def test_the_address_of_the_runbook_is_set_once(tmp_path: Path) -> None:
    known = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    headings = (DEPLOY.parent / "docs/troubleshooting.md").read_text().splitlines()
    for rule in known:
        assert rule["annotations"]["runbook_url"].endswith(f"}}}}#{rule['alert'].lower()}")
        assert f"### {rule['alert']}" in headings
    [rule] = [rule for rule in known if rule["alert"] == "SarAgentDown"]
    page = "https://wiki.example/docs/troubleshooting.html"
    tests = []
    for labels, where in (
        ({}, "/usr/share/doc/sar-agent/docs/troubleshooting.md"),
        ({"sar_agent_runbook": page}, page),
    ):
        texts = {"summary": "The agent on a does not answer."}
        texts |= {"description": rule["annotations"]["description"]}
        alert = {
            "exp_labels": {"severity": "warning", "job": "sar-agent", "instance": "a"},
            "exp_annotations": texts | {"runbook_url": f"{where}#saragentdown"},
        }
        tests.append(
            _case({'up{job="sar-agent"}': "0x20"}, "6m", "SarAgentDown")
            | {"external_labels": labels}
            | {"alert_rule_test": [
                {"eval_time": "6m", "alertname": "SarAgentDown", "exp_alerts": [alert]}
            ]}
        )  # fmt: skip
    promtool_passes(tests, tmp_path, [str(RULES)])


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


def test_the_dashboard_is_what_grafana_s_builder_makes() -> None:
    made = subprocess.run(
        [sys.executable, str(BOARD.with_name("dashboard.py")), "-"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == BOARD.read_text(), "run python deploy/grafana/dashboard.py"


def test_days_in_observe_mode_do_not_dilute_the_time_saved(tmp_path: Path) -> None:
    """Eight hours of observing, an hour on a fallback, then three with the agent's routes."""
    observed, live = "0.5+0x480", "0.8+0x180"
    series = {
        "sar_agent_install_mode": "0x480 1x240",
        'sar_agent_engine_in_force{engine="sar"}': "0x540 1x180",
        'sar_agent_job_throughput_mean_ratio{routes="baseline"}': "0.5+0x721",
        'sar_agent_job_throughput_mean_ratio{routes="in_force"}': f"{observed} 0.5+0x59 {live}",
        'sar_agent_job_throughput_mean_ratio{routes="planned"}': "0.8+0x721",
    }
    for routes, values in (
        ("baseline", "3x721"),
        ("in_force", "3x540 2x180"),
        ("planned", "2x721"),
    ):
        labels = f'collective="pairwise",routes="{routes}"'
        series[f"sar_agent_collective_contention_mean{{{labels}}}"] = values
    board = json.loads(BOARD.read_text())["panels"]
    shown = {p["title"]: p["targets"][0]["expr"] for p in board if p["type"] == "stat"}
    saved = {"all messages at once": 0.375, "one message at a time": 0.3333}
    tests = []
    for at in ("7h", "12h"):  # in observe mode the plans' gain, which is the same here
        case = _case(series, at, None)
        case["promql_expr_test"] = [
            {
                "expr": f"round({shown[f'Time saved: {kind}'].replace('$instance', 'a')}, 0.0001)",
                "eval_time": at,
                "exp_samples": [{"labels": '{instance="a"}', "value": value}],
            }
            for kind, value in saved.items()
        ]
        tests.append(case)
    promtool_passes(tests, tmp_path, [])


def test_units_are_accepted_and_equally_hardened(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    exposure = set()
    for name in ("sar-agent", "sar-agent-archive", "sar-agent-once"):
        text = (DEPLOY / f"systemd/{name}.service").read_text()
        start = re.search(r"^ExecStart=(\S+) ", text, re.MULTILINE)
        assert start is not None
        unit = tmp_path / f"{name}.service"
        unit.write_text(text.replace(start[1], sys.executable))  # /opt is not there in a test
        done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True)
        ours = [line for line in (done.stdout + done.stderr).splitlines() if name in line]
        assert (done.returncode, ours) == (0, [])
        done = subprocess.run(
            [analyze, "security", "--offline=yes", "--no-pager", str(unit)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
        assert level, done.stdout
        exposure.add(level[1])
    assert len(exposure) == 1


def test_the_service_warms_up_and_has_its_folders_and_limits() -> None:
    text = (DEPLOY / "systemd/sar-agent.service").read_text()
    start = re.search(r"^ExecStart=(\S+) run (--config /etc/sar-agent/sar-agent.toml)$", text, re.M)
    assert start is not None
    assert f"\nExecStartPre={start[1]} warm-up {start[2]}\n" in text
    for wanted in ("Type=notify", "WatchdogSec=", "MemoryMax=", "OOMScoreAdjust=500"):
        assert f"\n{wanted}" in text
    folders = dict(re.findall(r"^(State|Cache|Runtime)Directory=(\S+)$", text, re.M))
    assert folders == dict.fromkeys(("State", "Cache", "Runtime"), "sar-agent")


def test_only_observing_may_open_umad() -> None:
    """Whoever may write there may change all of the fabric."""
    for name in ("sar-agent", "sar-agent-archive", "sar-agent-once"):
        assert "\nDeviceAllow=" not in (DEPLOY / f"systemd/{name}.service").read_text()
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
