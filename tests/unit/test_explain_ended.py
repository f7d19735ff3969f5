"""`explain` of a job that has ended: what the history has of it, and nobody else's name."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest

from sar_agent.agent.explain_ended import ended_job
from sar_agent.agent.job_days import JobDay, JobDays
from sar_agent.agent.user_page import user_page
from sar_agent.config.model import Config, parse_config
from sar_agent.errors import InputError

DAY = date(2026, 11, 25).toordinal()
START = int(datetime(2026, 11, 25, 14, 2).timestamp())
ROW = JobDay(
    day=DAY, job="4711", start=START, ours=False, user="alice", hosts=16,
    leaves={"leaf1": 10, "leaf2": 6}, leaf_count=2, first=START, last=START + 7800, seconds=7800,
    sums={"in_force": [7800, 7800 * 1.58, 7800 * 2], "planned": [7000, 7000 * 1.25, 7000 * 1.94],
          "baseline": [7000, 7000 * 1.5, 7000]},
    baseline="ftree", worst_load=2.1, worst_at=START + 5880, worst_link='"spine1"[4] -> "leaf2"[8]',
    shared=["4713", "4714"], shared_count=14, counted=0.43,
)  # fmt: skip
OTHER = JobDay(DAY, "4713", START, False, user="bob", hosts=8)


def config(folder: Path, more: str = "") -> Config:
    return parse_config(f'[agent]\nstate_dir = "{folder}"\n{more}')


def test_it_says_when_with_whom_and_what_other_tables_would_have_done(tmp_path: Path) -> None:
    JobDays(tmp_path).keep([ROW, OTHER])
    assert ended_job(config(tmp_path), "4711").words().splitlines() == [
        "job 4711 of alice has ended: 16 hosts on 2 leaf switches, watched for "
        "2 h 10 min from 2026-11-25 14:02 to 2026-11-25 16:12",
        '  "leaf1": 10, "leaf2": 6',
        "2026-11-25:",
        "  in force: all messages at once 1.58 times, one at a time 2.00 times",
        "  planned: all messages at once 1.25 times, one at a time 1.94 times",
        "  baseline (ftree): all messages at once 1.50 times, one at a time 1.00 times",
        '  worst link "spine1"[4] -> "leaf2"[8]: load 2.10 at 15:40, at most 43.0% counted; shared '
        "with jobs 4713, 4714 and 12 more",
        "times: how many times as long as alone its messages take while all jobs send as much as "
        "they can; predicted, not measured",
    ]


def test_other_users_are_named_where_the_site_allows_it(tmp_path: Path) -> None:
    JobDays(tmp_path).keep([ROW, OTHER])
    silent = ended_job(config(tmp_path), "4711")
    assert "bob" not in silent.words() and "bob" not in json.dumps(silent.json())
    open_ = ended_job(config(tmp_path, "explain_names_users = true"), "4711")
    assert "jobs 4713 (bob), 4714 and 12 more" in open_.words()
    assert open_.json()["users"] == {"4713": "bob"}


def test_a_page_for_the_user_is_the_same_and_names_nobody_else(tmp_path: Path) -> None:
    JobDays(tmp_path).keep([replace(ROW, worst_link='"<b>"[4] -> "leaf2"[8]'), OTHER])
    page = user_page(ended_job(config(tmp_path), "4711"))
    assert "<h1>Did others slow job 4711?</h1>" in page and "job 4711 of alice" in page
    assert "bob" not in page and "&lt;b&gt;" in page and "shared with jobs 4713, 4714" in page
    assert page.count("<ul>") == page.count("</ul>") == 2
    open_ = ended_job(config(tmp_path, "explain_names_users = true"), "4711")
    assert "4713 (bob)" in user_page(open_)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (replace(ROW, sums={"in_force": [60, 60, 60]}), "no other job can have slowed it"),
        (replace(ROW, leaf_count=1, leaves={"leaf1": 16}), "it stayed on one leaf switch"),
        (replace(ROW, sums={}, worst_load=None), "nothing is known of its links"),
        (replace(ROW, shared=[], shared_count=0), "no other job used it"),
        (replace(ROW, ours=True), "in force (sar-agent's): all"),
    ],
)
def test_what_else_may_have_been(row: JobDay, said: str, tmp_path: Path) -> None:
    JobDays(tmp_path).keep([row])
    assert said in ended_job(config(tmp_path), "4711").words()


def test_of_a_job_that_ran_again_the_last_run_counts(tmp_path: Path) -> None:
    again = replace(ROW, start=START + 9000, first=START + 9000, last=START + 9600, seconds=600)
    JobDays(tmp_path).keep([ROW, again, replace(again, day=DAY + 1, first=START + 40000)])
    found = ended_job(config(tmp_path), "4711")
    assert [row.seconds for row in found.days] == [600, 600]


def test_a_job_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no job 99 is running, and the history does not have it"):
        ended_job(config(tmp_path), "99")
