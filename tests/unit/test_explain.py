"""`explain` and the other places that tell of a job's loads: they agree to the digit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.build import build_agent, build_site
from sar_agent.agent.explain import explain
from sar_agent.agent.loop import Agent
from sar_agent.config.model import parse_config
from sar_agent.live_page.web_app import WebApp
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
