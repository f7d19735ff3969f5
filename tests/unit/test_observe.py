"""An agent in observe mode from files alone: no umad, no plugin, no Slurm, no root."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sar_agent.agent.build import build_agent
from sar_agent.agent.history import History
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Result
from sar_agent.agent.source_ages import read_ages
from sar_agent.commands.named_files import read_named_files
from sar_agent.config.model import parse_config
from sar_agent.fabric.spec import load_fabric
from sar_agent.services.live_page.answers import state_answer

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FABRIC = EXAMPLES / "cluster.ibnetdiscover"
ERRORS = "   GUID 0x{:016x} port {}: [SymbolErrorCounter == {}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cluster.ibnetdiscover", "opensm-lfts.dump", "squeue.txt"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    return tmp_path


def agent_of(folder: Path, counters: str = "errors.txt") -> Agent:
    return build_agent(
        parse_config(
            f"""
            [agent]
            engine = "minhop"
            state_dir = "{folder}/state"
            run_dir = "{folder}/run"
            metrics_address = ""
            [slurm]
            source = "file"
            jobs_file = "{folder}/squeue.txt"
            topology_conf = ""
            [fabric]
            file = "{folder}/cluster.ibnetdiscover"
            [opensm]
            plugin_socket = "{folder}/no-such.sock"
            lfts_dump = "{folder}/opensm-lfts.dump"
            [watch]
            counters = "{folder}/{counters}"
            """
        )
    )


def value(agent: Agent, name: str, **labels: str) -> float | None:
    return agent.metrics.registry.get_sample_value(f"sar_agent_{name}", labels)


def test_a_cable_that_begins_to_count_errors_is_a_metric_a_box_and_a_row_with_its_jobs(folder):
    fabric = load_fabric(folder / "cluster.ibnetdiscover")
    agent = agent_of(folder)
    channel = int(fabric.channel_offset[fabric.leaves[0]])
    port = int(fabric.switch_guid[fabric.leaves[0]]), int(fabric.channel_port[channel])
    file = folder / "errors.txt"

    def count(symbols: int, ago: float) -> None:
        file.write_text(ERRORS.format(*port, symbols))
        os.utime(file, (time.time() - ago,) * 2)
        agent.observers["cables"].reader._due = 0.0

    count(100, 100.0)
    assert agent.pass_once().result is Result.PLANNED
    assert value(agent, "bad_cables", kind="errors") == 0
    count(300, 1.0)
    assert agent.pass_once().ok
    assert value(agent, "bad_cables", kind="errors") == 1
    assert value(agent, "bad_cables_with_jobs", kind="errors") == 1
    assert value(agent, "bad_cable_jobs") >= 1
    assert value(agent, "source_stale", source="counters") == 0
    row = History(folder / "state").last(1)[0]
    assert (row.reason, row.result) == ("cable", "bad") and "200 symbol errors" in row.why
    assert row.message.startswith("jobs ")
    page = state_answer(agent.observers["page"].pages._snapshot, None)
    assert page["boxes"][0]["head"] == "Cables: 1 bad"
    assert ["200 symbol errors" in one["sentence"] for one in page["wrong"]] == [True]
    count(300, 0.0)
    assert agent.pass_once().ok
    assert value(agent, "bad_cables", kind="errors") == 0
    row = History(folder / "state").last(1)[0]
    assert row.result == "well" and row.why.startswith("no longer: ")


def test_counters_that_cannot_be_read_are_said_once_in_the_log_and_by_config_check(folder, caplog):
    agent = agent_of(folder, "none.txt")
    for _ in range(2):
        assert agent.pass_once().ok
        agent.observers["cables"].reader._due = 0.0
    assert caplog.text.count("none.txt: no such file") == 1
    said, wrong = read_named_files(agent.config)
    assert not wrong and "none.txt: no such file" in said[-1]
    (folder / "none.txt").write_text(ERRORS.format(load_fabric(FABRIC).switch_guid[0], 1, 5))
    assert "has counters of" in read_named_files(agent.config)[0][-1]


def test_files_of_last_month_are_said_to_be_so(folder):
    agent = agent_of(folder, "none.txt")
    old = time.time() - 30 * 86400
    for name in ("cluster.ibnetdiscover", "opensm-lfts.dump", "squeue.txt"):
        os.utime(folder / name, (old, old))
    assert agent.pass_once().ok
    page = state_answer(agent.observers["page"].pages._snapshot, None)
    wrong = [one["sentence"] for one in page["wrong"]]
    for words in ("the jobs are of", "the fabric is of", "the tables are of", "no such file"):
        assert any(words in sentence for sentence in wrong), (words, wrong)
    ages = read_ages(folder / "run")
    for source in ("jobs", "fabric", "tables", "counters"):
        assert value(agent, "source_stale", source=source) == 1, source
        assert ages[source].stale, source


def test_without_tables_the_jobs_on_hosts_of_bad_cables_are_still_named(folder):
    (folder / "opensm-lfts.dump").unlink()
    agent = agent_of(folder)
    fabric = load_fabric(folder / "cluster.ibnetdiscover")
    hosts = {host for job in agent.observer.source.poll().records for host in job.hosts}
    t = next(t for t in range(fabric.terminals) if fabric.terminal_host[t] in hosts)
    switch = int(fabric.switch_guid[fabric.terminal_switch[t]])
    file = folder / "errors.txt"
    for symbols, ago in ((1, 100.0), (90, 1.0)):
        file.write_text(ERRORS.format(switch, int(fabric.terminal_switch_port[t]), symbols))
        os.utime(file, (time.time() - ago,) * 2)
        agent.observers["cables"].reader._due = 0.0
        assert agent.pass_once().ok
    assert value(agent, "bad_cables_with_jobs", kind="errors") == 1
