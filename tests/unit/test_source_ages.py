"""How old what the agent knows is: a file of last month is not today's, though it is read today."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from sar_agent.agent import observe_site
from sar_agent.agent.build import build_site
from sar_agent.agent.source_ages import FILE, SourceAge, age_of_file, read_ages, write_ages
from sar_agent.agent.status import AgentStatus
from sar_agent.commands.status_check import MonitoringCode, judge_status
from sar_agent.config.model import parse_config
from sar_agent.errors import Unavailable
from sar_agent.slurm.jobs_file import JobsFileSource
from sar_agent.util.file_versions import version_of
from tests.worlds.fabric_texts import SMALL

DAY = 86400.0
STATUS = AgentStatus("observe", "process 5", None, None, "", [])


def test_what_is_stale_is_a_sentence_with_the_file_and_the_date():
    now = time.time()
    assert age_of_file("jobs", "/x/jobs", now - 60) == SourceAge(now - 60)
    old = age_of_file("jobs", "/x/jobs", now - 30 * DAY).stale
    assert old.startswith("/x/jobs: the jobs are of ") and "30 days ago, and jobs that" in old
    assert not age_of_file("fabric", "/x/f", now - 0.9 * DAY).stale
    assert not age_of_file("jobs", "/x/jobs", now + 30).stale
    ahead = age_of_file("jobs", "/x/jobs", now + DAY).stale
    assert "the clocks of two machines differ, so the age of the jobs is not known" in ahead
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


def test_status_reads_what_the_agent_wrote_and_check_says_which_source_is_stale_and_why(tmp_path):
    assert read_ages(tmp_path) == {}
    said = {"jobs": age_of_file("jobs", "/x/jobs", 1e9), "fabric": SourceAge(time.time() - 5)}
    write_ages(tmp_path, said)
    ages = read_ages(tmp_path)
    assert ages == said
    status = replace(STATUS, sources=ages)
    assert "days ago (stale), fabric" in status.words()
    code, sentence = judge_status(status)
    assert code is MonitoringCode.WARNING
    assert sentence.startswith("jobs is stale: /x/jobs: the jobs are of 2001-09-0")
    assert judge_status(STATUS)[0] is MonitoringCode.OK
    for other in ("", "no JSON", "[]", '{"jobs": {"at": "soon"}}'):
        (tmp_path / FILE).write_text(other)
        assert read_ages(tmp_path) == {}


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
