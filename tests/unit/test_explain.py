"""`explain` and the other places that tell of a job's loads: they agree to the digit.
`explain` of a job that has ended: what the history has of it, and nobody else's name."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.build import build_agent, build_site
from sar_agent.agent.explain import explain
from sar_agent.agent.explain_ended import ended_job
from sar_agent.agent.job_days import JobDay, JobDays
from sar_agent.agent.loop import Agent
from sar_agent.agent.user_page import user_page
from sar_agent.config.model import Config, parse_config
from sar_agent.errors import InputError
from sar_agent.services.live_page.web_app import WebApp
from tests.worlds.command_line import said, sar_agent
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live_page import ask

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
CONFIG = """\
[agent]
state_dir = "{folder}/state"
run_dir = "{folder}/run"
metrics_address = ""
objective = "{objective}"
[slurm]
squeue = ["{squeue}"]
topology_conf = ""
[fabric]
file = "{fabric}"
[opensm]
lfts_dump = "{lfts}"
"""
JOBS = {"1": "n[001-020]", "2": "n[021,027,033]", "3": "n[022,028,034]", "4": "n[023,029]"}


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """Values of `CONFIG`: the example's hosts with few large and many small jobs, under minhop."""
    fabric = EXAMPLES / "cluster.ibnetdiscover"
    squeue = fake_squeue(tmp_path, [{"%i": job, "%N": nodes} for job, nodes in JOBS.items()])
    jobs = tmp_path / "jobs"
    jobs.write_text("".join(
        f"{job}|RUNNING|{nodes}|batch|root||1|2026-01-01T00:00:00|\n" for job, nodes in JOBS.items()
    ))  # fmt: skip
    done = sar_agent(
        "route", "--fabric", fabric, "--jobs", jobs, "--engine", "minhop", "--out", tmp_path / "m",
        "--export", "lfts",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lfts = tmp_path / "m/lfts.dump"
    return {
        "folder": str(tmp_path), "squeue": squeue, "fabric": str(fabric), "lfts": str(lfts),
        "jobs": str(jobs), "objective": "load",
    }  # fmt: skip


def state_of(agent: Agent) -> dict[str, Any]:
    page = json.loads(ask(WebApp(agent.observers["page"].pages, "loopback"), "/api/state.json")[2])
    return dict(page)


def test_in_shadow_mode_the_page_shows_the_plan_and_no_alarm(site: dict[str, str]) -> None:
    os.utime(site["lfts"], ns=(1795735000123496384,) * 2)  # not st_mtime, divided by 1e9
    agent = build_agent(parse_config(CONFIG.format_map(site)))
    for _ in range(2):
        agent.pass_once()
        state = state_of(agent)
        assert state["wrong"] == []
        assert not state["in_force"]["ours"]
        assert state["in_force"]["dumped"] == Path(site["lfts"]).stat().st_mtime
        value = agent.metrics.registry.get_sample_value
        for name, metric in (("load_max", "channel_load_max"), ("dark_fiber_ratio",) * 2):
            for key, routes in (("measures", "in_force"), ("planned", "planned")):
                assert state[key][name] == value(f"sar_agent_{metric}", {"routes": routes})
        assert state["planned"]["load_max"] < state["measures"]["load_max"]
        assert state["planned"]["phase_contention_mean"] >= 1


def test_explain_page_metric_and_assess_agree(site: dict[str, str]) -> None:
    config = parse_config(CONFIG.format_map(site))
    agent = build_agent(config)
    agent.pass_once()
    page = state_of(agent)
    shown = {job["job"]: job for job in page["jobs"]}
    told = {job: explain(config, job, build_site(config)).in_force for job in JOBS}
    for job, under in told.items():
        assert under is not None
        assert under.load == pytest.approx(shown[job]["predicted"], abs=1e-9)
        if [one["worst_link"] for one in page["jobs"]].count(under.worst_link) > 1:
            assert under.shared_with
    largest = max(under.load for under in told.values() if under)
    assert page["measures"]["load_max"] == largest
    value = agent.metrics.registry.get_sample_value
    assert value("sar_agent_channel_load_max", {"routes": "in_force"}) == largest
    assessed = said(
        "assess", "--fabric", site["fabric"], "--jobs", site["jobs"], "--routes", site["lfts"],
        "--out", f"{site['folder']}/page", "--json",
    )  # fmt: skip
    assert assessed["before"]["load_max"] == largest


def test_the_worst_link_is_by_routes_where_these_are_the_objective(site: dict[str, str]) -> None:
    by = {}
    for objective in ("load", "routes"):
        config = parse_config(CONFIG.format_map(site | {"objective": objective}))
        found = [explain(config, job, build_site(config)).in_force for job in JOBS]
        by[objective] = [(one.load, one.efi_max) for one in found if one]
    for (load, routes), (other_load, other_routes) in zip(by["load"], by["routes"], strict=True):
        assert load >= other_load and routes <= other_routes
    assert by["load"] != by["routes"]


def test_a_host_with_two_rails_counts_once(site: dict[str, str], tmp_path: Path) -> None:
    fabric = tmp_path / "rails"
    text = Path(site["fabric"]).read_text()
    fabric.write_text(text.replace('"n031 HCA-1', '"n001 HCA-2'))
    config = parse_config(CONFIG.format_map(site | {"fabric": str(fabric)}))
    words = explain(config, "1", build_site(config)).words()
    assert words.startswith("job 1: 20 hosts on ")


DAY = date(2026, 11, 25).toordinal()
START = int(datetime(2026, 11, 25, 14, 2).timestamp())
ROW = JobDay(
    day=DAY, job="4711", start=START, ours=False, user="alice", hosts=16,
    leaves={"leaf1": 10, "leaf2": 6}, leaf_count=2, first=START, last=START + 7800, seconds=7800,
    sums={"in_force": [7800, 7800 * 1.58, 7800 * 2], "planned": [7000, 7000 * 1.25, 7000 * 1.94],
          "baseline": [7000, 7000 * 1.5, 7000]},
    baseline="ftree", worst_load=2.1, worst_at=START + 5880, worst_link='"spine1"[4] -> "leaf2"[8]',
    shared=["4713", "4714"], shared_count=14,
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
        '  worst link "spine1"[4] -> "leaf2"[8]: load 2.10 at 15:40; shared with '
        "jobs 4713, 4714 and 12 more",
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
