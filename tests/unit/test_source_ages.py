"""How old what the agent knows is: a file of last month is not today's, though it is read today."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from sar_agent.agent import observe_site
from sar_agent.agent.ask_ages import ages_of_running
from sar_agent.agent.build import build_site
from sar_agent.agent.source_ages import SourceAge, age_of_file
from sar_agent.agent.status import AgentStatus
from sar_agent.commands.status_check import MonitoringCode, judge_status
from sar_agent.config.model import parse_config
from sar_agent.errors import Unavailable
from sar_agent.slurm.jobs_file import JobsFileSource
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.file_versions import version_of
from sar_lab.live.process import free_port
from tests.worlds.fabric_texts import SMALL

DAY = 86400.0
STATUS = AgentStatus("observe", "process 5", None, None, "", [])


def test_what_is_stale_is_a_sentence_with_the_file_and_the_date():
    now = time.time()
    assert age_of_file("jobs", "/x/jobs", now - 60) == SourceAge(now - 60)
    old = age_of_file("jobs", "/x/jobs", now - 30 * DAY).stale
    assert old.startswith("/x/jobs: the jobs are of ") and "30 days ago, and jobs that" in old
    assert not age_of_file("fabric", "/x/f", now - 0.9 * DAY).stale
    assert "the fabric is of" in age_of_file("fabric", "/x/f", now - 2 * DAY).stale


def test_the_jobs_file_has_the_time_of_its_writing_and_is_read_when_it_is_new(tmp_path):
    file = tmp_path / "jobs"
    source = JobsFileSource(file)
    with pytest.raises(Unavailable, match=r"cannot be read .*No such file"):
        source.poll()
    file.write_text("7|RUNNING|n[1-2]|p|u|a|2|2026-11-20T10:00:00|\n")
    os.utime(file, (1000.0, 1000.0))
    poll = source.poll()
    assert poll.at == 1000.0 and poll.records[0].hosts == ("n1", "n2") and source.poll() is poll
    file.write_text("no jobs\n")
    with pytest.raises(Unavailable, match="jobs"):
        source.poll()


def test_versions_of_files_and_folders(tmp_path):
    assert version_of(tmp_path / "none") is None and version_of(tmp_path, ("a",)) is None
    (tmp_path / "a").write_text("x")
    os.utime(tmp_path / "a", (50.0, 50.0))
    first = version_of(tmp_path, ("a", "b"))
    assert first is not None and first.written_at == 50.0
    (tmp_path / "b.gz").write_text("y")
    second = version_of(tmp_path, ("a", "b"))
    assert second is not None and second != first and second.written_at > 50.0


def test_status_asks_the_running_agent_and_check_warns_of_what_is_stale():
    metrics = Metrics("0", "observe", "sar-plus")
    metrics.show_age("jobs", 1e9, True)
    metrics.show_age("fabric", time.time() - 5, False)
    port = free_port(1)
    assert ages_of_running(f"127.0.0.1:{port}") == {} == ages_of_running("")
    metrics.serve("127.0.0.1", port)
    ages = ages_of_running(f"0.0.0.0:{port}")
    assert ages["jobs"].stale and ages["jobs"].at == 1e9 and not ages["fabric"].stale
    status = replace(STATUS, sources=ages)
    assert "days ago (stale), fabric" in status.words()
    code, sentence = judge_status(status)
    assert code is MonitoringCode.WARNING and sentence.startswith("jobs is stale")
    assert judge_status(STATUS)[0] is MonitoringCode.OK


def test_a_file_of_the_fabric_is_read_when_it_was_written_and_not_while_it_is(
    tmp_path, monkeypatch
):
    file = tmp_path / "fabric"
    file.write_text(SMALL)
    folders = f'state_dir = "{tmp_path}/s"\nrun_dir = "{tmp_path}/r"\n'
    config = parse_config(f'[agent]\n{folders}[fabric]\nfile = "{file}"\n')
    site = build_site(config).observer
    assert site._fabric_due(None)
    assert site.refresh_fabric()
    assert not site._fabric_due(None)
    monkeypatch.setattr(observe_site, "SETTLED_SECONDS", 1e9)
    file.write_text(SMALL + "\n")
    assert not site._fabric_due(None), "it may be written still"
    monkeypatch.setattr(observe_site, "SETTLED_SECONDS", -1.0)
    assert site._fabric_due(None)
    os.utime(file, (time.time() - 3 * DAY,) * 2)
    assert site.refresh_fabric()
    site._look_at_ages()
    assert any("the fabric is of" in said for said in site.problems.present())
