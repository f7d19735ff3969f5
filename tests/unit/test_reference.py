"""docs/reference/ is what the code says: no key, option, metric or JSON key without its line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.reference_tools.command_entries import command_entries
from docs.reference_tools.config_entries import config_entries
from docs.reference_tools.error_entries import error_entries
from docs.reference_tools.metric_entries import alert_expressions, metric_entries
from docs.reference_tools.pages import reference_pages
from tests.worlds.command_line import sar_agent, sar_lab
from tests.worlds.json_keys import OBJECTS, differences

PROGRAM_OF = {entry.words: entry.program for entry in command_entries()}
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
RULES = (ROOT / "deploy/prometheus/sar-agent.rules.yml").read_text()
EXAMPLES = ROOT / "docs" / "examples"
FABRIC = ("--fabric", EXAMPLES / "cluster.ibnetdiscover")
INPUT = (*FABRIC, "--jobs", EXAMPLES / "squeue.txt")


@pytest.mark.parametrize("name", list(reference_pages(RULES)))
def test_a_page_is_what_the_code_says(name: str) -> None:
    written = (FOLDER / name).read_text()
    assert written == reference_pages(RULES)[name], "run python -m docs.reference_tools"


def test_every_entry_is_explained() -> None:
    for key in config_entries():
        assert key.description and key.type and key.default, key
    for command in command_entries():
        assert command.help and command.panel, command
        for option in command.options:
            assert option.help, f"{command.words} {option.names}"
    for metric in metric_entries(RULES):
        assert metric.meaning and metric.name.startswith(("sar_agent_", "process_")), metric


def test_errors_are_found_with_their_remedies() -> None:
    entries = list(error_entries())
    assert len(entries) > 150
    assert any(e.sentence == "no such file" and e.remedy == "check the path" for e in entries)
    assert any(e.kind == "Unavailable" and "cannot serve metrics" in e.sentence for e in entries)


def test_an_alert_is_listed_with_each_metric_that_it_reads() -> None:
    listed = {alert for metric in metric_entries(RULES) for alert in metric.alerts}
    reading = {a for a, query in alert_expressions(RULES) if "sar_agent_" in query}
    assert listed == reading and len(reading) > 10


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration in observe mode, whose agent has made one pass, and routes beside it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "agent.toml").write_text(
        f"""
        [agent]
        state_dir = "{folder}/state"
        run_dir = "{folder}/run"
        [slurm]
        squeue = ["{EXAMPLES}/squeue"]
        topology_conf = "{EXAMPLES}/topology.conf"
        [fabric]
        file = "{EXAMPLES}/cluster.ibnetdiscover"
        [opensm]
        lfts_dump = "{EXAMPLES}/opensm-lfts.dump"
        """
    )
    (folder / "history.csv").write_text(HISTORY)
    trace = sar_lab("make-trace", "cartesian", "--ranks", "8", "--size", "32KB")
    (folder / "ring.trace").write_text(trace.stdout)
    for name in ("state", "run"):
        (folder / name).mkdir()
    for engine in ("dfsssp", "sar"):
        assert sar_agent("route", *INPUT, "--engine", engine, "--out", folder / engine) is not None
    return folder


HISTORY = """job,start,end,nodelist
1,2024-01-01T00:00:00,2024-01-01T02:00:00,n[001-012]
2,2024-01-01T01:00:00,2024-01-01T03:00:00,n[013-024]
"""
COMMANDS: dict[str, tuple[Any, ...]] = {
    "once": ("--config", "{}/agent.toml"),
    "status": ("--config", "{}/agent.toml"),
    "history": ("--config", "{}/agent.toml"),
    "explain": ("4712", "--config", "{}/agent.toml"),
    "warm-up": ("--config", "{}/agent.toml"),
    "config check": ("--config", "{}/agent.toml"),
    "config show": ("--config", "{}/agent.toml"),
    "route": (*INPUT, "--engine", "dfsssp", "--out", "{}/new", "--dry-run"),
    "cables": INPUT,
    "link": ("S1-0[8]", *INPUT),
    "path": ("n001", "n020", *INPUT),
    "what-if": (*INPUT, "--down", "S2-0"),
    "place": (*FABRIC, "--jobs", EXAMPLES / "queue.txt", "--nodes", EXAMPLES / "sinfo.txt"),
    "hours": (*FABRIC, "--history", "{}/history.csv", "--down", "S2-0"),
    "measure": (*INPUT, "--routes", "{}/sar"),
    "check": (*FABRIC, "--routes", "{}/sar", "--from", "{}/dfsssp"),
    "engines": (),
    "topology check": (*FABRIC, "--topology-conf", EXAMPLES / "topology.conf"),
    "topology generate": FABRIC,
    "rank-order": ("4711", *INPUT),
    "anonymize": (*INPUT, "--out", "{}/anonymous"),
    "key plan": FABRIC,
    "assess": (*INPUT, "--engine", "sar", "--out", "{}/assess"),
    "demo": ("--fabric", "xgft:2;6,6;1,4", "--out", "{}/demo"),
    "simulate-time": (*INPUT, "--routes", "{}/sar"),
    "simulate-trace": ("--trace", "{}/ring.trace", *FABRIC, "--routes", "{}/sar"),
    "make-trace": ("cartesian", "--ranks", "8", "--size", "32KB"),
    "packets": (*INPUT, "--routes", "{}/sar", "--bytes", "4096"),
    "count-congestion": (*FABRIC, "--routes", "{}/sar", "--runs", "2"),
    "replay": (
        *FABRIC,
        "--history",
        "{}/history.csv",
        "--engine",
        "sar",
        "--engine",
        "dfsssp",
        "--out",
        "{}/replay",
        "--workers",
        "1",
    ),
    "lab list": (),
}
NEEDS_MORE = {
    "rollback", "resume", "leave", "fetch-state", "send-state", "key request", "key done",
    "key list", "lab run", "emulate",
}  # fmt: skip
"""They need a daemon, counters of ports, root, or (`lab run`) minutes: their own tests
call them."""
WITHOUT_JSON = {
    "run": "a daemon: its results are metrics and `status --json`",
    "serve-state": "its answer is one line of JSON, or an archive, for the other machine",
    "trial": "it narrates an hour to a person, and writes trial.json",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_json_keys_of_a_command_are_listed(command: str, site: Path) -> None:
    if command in ("status", "history", "explain"):
        sar_agent("once", "--config", site / "agent.toml")
    words = [str(word).replace("{}", str(site)) for word in COMMANDS[command]]
    program = {"sar-agent": sar_agent, "sar-lab": sar_lab}[PROGRAM_OF[command]]
    done = program(*command.split(), *words, "--json")
    assert done.returncode == 0, done.stderr
    assert not (site / "new").exists(), "a dry run writes nothing"
    if command in ("assess", "demo"):
        assert done.stderr.count("\n… ") >= 2, "progress, though stderr is no terminal"
    assert list(differences(command, json.loads(done.stdout))) == []


def test_every_command_has_json_that_is_listed_or_a_reason() -> None:
    commands, without = (
        {
            entry.words
            for entry in command_entries()
            if any("--json" in option.names for option in entry.options) is wanted
        }
        for wanted in (True, False)
    )
    assert (commands, without) == (set(COMMANDS) | NEEDS_MORE, set(WITHOUT_JSON))
    inner = {key.object for keys in OBJECTS.values() for key in keys if key.object}
    answers = {name for name in OBJECTS if name.startswith("/")}  # test_live_page.py
    assert set(OBJECTS) == commands | inner | answers


def test_a_missing_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(differences("engine", {"name": "x", "summary": "y", "new": 1})) == [
        "engine.new has no line"
    ]
    assert list(differences("engine", {"name": "x"})) == ["engine.summary is not printed"]
    assert re.search(r"^\| `--json` \|", (FOLDER / "commands.md").read_text(), re.MULTILINE)
