"""Routing keys from request to in force, against stand-ins; live: tests/live/test_keys_live.py."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.outcome import Result
from sar_agent.agent.state import State
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed, Unserved
from sar_agent.events.message import MessageRefused
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.services.keys import leases
from sar_agent.services.keys import pool as manager
from tests.worlds.fake_opensm import job
from tests.worlds.key_site import ALICE, BOB, JOBS, ROOT, TORUS_HOSTS, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    assert site.pass_().result is Result.INSTALLED
    return site


def test_a_key_is_in_force_and_only_its_offset_changes(site: Site) -> None:
    before = site.tables()
    assert len(before) == 8
    answer = site.ask()
    assert answer["state"] == "in_force" and answer["offset"] == 2
    assert answer["env"] == {"UCX_IB_LID_PATH_BITS": "2"}
    assert site.changed(before) == [2]
    assert answer["own"] == answer["total"] == 1, "nobody in the way"
    columns = np.flatnonzero((site.tables()[2] != before[2]).any(axis=0))
    assert set(columns) <= {site.fabric.hosts[host][0] for host in TORUS_HOSTS}
    state = site.agent.installed.store.load()
    assert isinstance(state, State) and state.generation == site.bridge.generation == 2
    assert site.once().result is Result.NOTHING, "a key is no reason to reroute"
    assert site.value("sar_agent_key_leases") == 1
    assert site.value("sar_agent_key_offsets_free") == 5
    assert site.value("sar_agent_key_installs_total", result="installed") == 1
    assert site.agent.installed.generations.numbers() == [2], "a rollback goes behind keys"


def test_phases_have_offsets_of_their_own_until_there_are_none(site: Site) -> None:
    found = [site.ask(phase=f"p{n}", traffic=f"shift:{1 + n % 3}")["offset"] for n in range(6)]
    assert found == [2, 3, 4, 5, 6, 7]
    full = site.ask(phase="p6")
    assert full["state"] == "none" and full["offset"] == 0
    assert full["sentence"] == "all 6 LID offsets for keys are leased on hosts of job 1"
    assert site.say("key-done", phase="p3")["phases"] == ["p3"]
    site.now += 11
    assert site.ask(phase="p6")["offset"] == 5
    listed = site.say("key-list")
    assert [one["phase"] for one in listed["keys"]] == ["p0", "p1", "p2", "p4", "p5", "p6"]
    assert site.say("key-done")["phases"] == ["p0", "p1", "p2", "p4", "p5", "p6"]
    assert site.say("key-done")["error"] == "job 1 has no key"


def test_somebody_else_s_job(site: Site) -> None:
    with pytest.raises(MessageRefused, match="job 1 does not belong to uid 1002"):
        site.ask(BOB)
    site.authority.known = {}  # not seen yet: judged when it is
    assert site.ask(BOB)["error"] == "job 1 is not one of uid 1002"
    site.ask()
    with pytest.raises(MessageRefused):
        site.know()
        site.say("key-done", BOB, phase="x")
    assert site.ask(ROOT)["offset"] == 2


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ({"pairs": [0, 9]}, "rank 9 is not in the job, which has 0 … 3"),
        ({"pairs": [0, 0]}, "rank 0 sends to itself"),
        ({"pairs": [0, 1, 2]}, "the last rank of pairs has no rank to send to"),
        ({"pairs": [0, 1], "tasks": "1(x9)2"}, "is not of the form 2(x3),1"),
        ({"pairs": [0, 1], "tasks": "2(x9)"}, "is of more hosts than the job's 4"),
        ({"traffic": "butterfly", "tasks": "2(x3)"}, "power of two"),
        ({"traffic": "squares"}, "'squares' does not say who sends to whom; there are ring"),
        ({"traffic": "stencil2d:4x2"}, "a grid of 4x2 needs 8 ranks, the job has 4"),
        ({"traffic": "ring", "tasks": "999999(x4)"}, "are more than 1024 ranks of a host"),
        ({"traffic": "ring", "nodes": "n[001,n002"}, "n[001,n002"),
        ({"traffic": "ring", "nodes": "n[001,002]"}, "n002 is no host of job 1"),
    ],
)
def test_wishes_that_make_no_sense(site: Site, wish: dict[str, Any], error: str) -> None:
    wish = {"traffic": None} | wish
    answer = site.ask(**wish)
    assert answer["ok"] is False and error in answer["error"], answer
    assert site.bridge.generation == 1


def test_a_phase_has_one_name_and_one_wish(site: Site) -> None:
    site.ask()
    answer = site.ask(traffic="bitcomp")
    assert answer["ok"] is False
    assert answer["error"].startswith("phase x of job 1 has a key for other traffic")
    assert site.ask()["offset"] == 2


def test_a_lease_ends_unless_it_is_renewed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    at = itertools.count(time.time(), 0.001)
    for module in (leases, manager):
        monkeypatch.setattr(module, "steady_time", lambda: next(at))
    monkeypatch.setattr(time, "time", lambda: 4e9)  # somebody sets the clock
    assert site.ask(lease=100)["ends"] == pytest.approx(next(at) + 100, abs=1)
    at = itertools.count(next(at) + 90, 0.001)
    assert site.ask(lease=100)["state"] == "in_force"
    site.agent.serve_keys()
    at = itertools.count(next(at) + 90, 0.001)
    site.once()
    assert site.value("sar_agent_key_leases") == 1
    at = itertools.count(next(at) + 90, 0.001)
    site.once()
    assert site.value("sar_agent_key_leases") == 0


def test_the_end_of_the_job_frees_the_offset(site: Site) -> None:
    site.ask()
    site.source.records = JOBS[1:]
    before = site.tables()
    assert site.once().result is Result.INSTALLED
    assert site.value("sar_agent_key_leases") == 0
    assert 2 in site.changed(before), "the shelter's tables again"
    hosts = slice(site.fabric.terminals)
    assert np.array_equal(site.tables()[2][:, hosts], site.tables()[1][:, hosts])


def test_a_cable_that_breaks_makes_keys_anew(site: Site) -> None:
    site.ask(traffic="shift:2")
    before = site.tables()
    net = site.net.read_text()
    site.cut()
    assert site.pass_().result is Result.INSTALLED
    assert site.desk.busy, "the key is owed"
    site.agent.serve_keys()
    assert site.say("key-list")["keys"][0]["offset"] == 2
    assert site.ask(traffic="shift:2")["state"] == "in_force", "no request, no install"
    site.net.write_text(net)
    site.bridge.topology_changes += 1
    assert site.pass_().result is Result.INSTALLED
    site.agent.serve_keys()
    assert np.array_equal(site.tables()[2][:, :16], before[2][:, :16])


def test_a_fabric_that_cannot_hold_a_key_takes_it_and_no_job(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.ask(traffic="shift:2")
    with monkeypatch.context() as patched:
        patched.setattr(
            "sar_agent.services.keys.pool.make",
            lambda *_: (_ for _ in ()).throw(Unserved("no tree (test)")),
        )
        site.cut()
        assert site.pass_().result is Result.INSTALLED
        site.agent.serve_keys()
        assert site.value("sar_agent_keys_lost") == 1
        assert not site.desk.busy
        assert site.say("key-list")["keys"] == []
        assert np.array_equal(site.tables()[2][:, :16], site.tables()[1][:, :16])


def test_a_key_that_fails_its_check_is_told_and_leaves_all_as_it_was(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = site.tables()
    with monkeypatch.context() as patched:
        patched.setattr(
            "sar_agent.agent.planner.make_plan",
            lambda *_: (_ for _ in ()).throw(CheckFailed("a loop (test)")),
        )
        answer = site.ask()
    assert answer["sentence"] == "the key could not be put in force: a loop (test)"
    assert site.changed(before) == []
    site.source.records = JOBS[:1]
    assert site.once().result is Result.INSTALLED
    assert site.value("sar_agent_key_installs_total", result="failed") == 1


def test_opensm_refuses_a_key(site: Site) -> None:
    site.bridge.refuse = ["stale (test)"]
    assert "stale (test)" in site.ask()["sentence"]
    assert site.once().result is Result.NOTHING
    site.now += 11
    assert site.ask()["offset"] == 2


def spoiled(site: Site) -> None:
    site.bridge.spoil = True


def not_confirmed(site: Site) -> None:
    tables = site.bridge.tables
    assert tables
    had = np.where(tables.forwarding == 0, 0, 254).astype(np.uint8)
    site.bridge.tables = replace(tables, had=had)


def a_port_more(site: Site) -> None:
    site.bridge.unknown_terminals = 1


@pytest.mark.parametrize("happens", [spoiled, not_confirmed, a_port_more])
def test_keys_are_proved_from_what_was_read_back(
    site: Site, happens: Callable[[Site], None]
) -> None:
    """They were once proved from the plan that the agent remembered."""
    before = list(site.bridge.loads)
    happens(site)
    assert site.ask()["state"] == "waiting"
    site.now += 100
    site.agent.serve_keys()
    assert site.ask()["offset"] == 0 and site.bridge.loads == before
    assert site.bridge.generation == before[-1]
    site.bridge.spoil, site.bridge.unknown_terminals = False, 0
    site.bridge.confirm()
    site.now += 11
    assert site.ask(phase="y")["offset"] == 2


def test_no_lmc_no_keys_and_observing_neither(tmp_path: Path) -> None:
    flat = Site(tmp_path, lmc=0)
    flat.pass_()
    assert "OpenSM runs with LMC 0" in flat.ask()["sentence"]
    flat.agent.keys.config = Config.model_validate({"agent": {"mode": "observe"}})
    flat.agent.serve_keys()
    assert "only observes" in flat.ask()["sentence"]


def test_a_job_that_names_its_traffic_has_a_key_to_its_end(site: Site) -> None:
    start = {"traffic": "ring", "nodes": "n[001,005,009,013]"}
    assert site.say("start", ROOT, traffic="weight=0.5") == {}
    assert site.say("start", ROOT, **start) == {"wait": 0.05}
    site.agent.serve_keys()
    assert site.say("hint", ROOT, **start)["env"] == {"UCX_IB_LID_PATH_BITS": "2"}
    assert site.say("hint", ALICE, **start)["env"] == {"UCX_IB_LID_PATH_BITS": "2"}
    assert site.say("end", ROOT, **start) == {}
    assert [one.ends for one in site.agent.keys.pool.leases] == [None]
    two = start | {"tasks": "2(x4)"}  # only the step knows
    assert "wait" in site.say("hint", ROOT, **two)
    site.agent.serve_keys()
    assert site.say("hint", ROOT, **two)["env"] == {"UCX_IB_LID_PATH_BITS": "2"}
    assert [one.tasks for one in site.agent.keys.pool.leases] == ["2(x4)"]


def test_a_plan_that_fails_with_keys_is_made_without(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sar_agent.agent import planner

    site.ask()
    real = planner.stack

    def stack(base: Any, shelter: Any, lmc: int, keys: Any = None, **more: Any) -> Any:
        if keys:
            raise CheckFailed("a loop (test)")
        return real(base, shelter, lmc, keys, **more)

    monkeypatch.setattr(planner, "stack", stack)
    site.source.records = JOBS[:1]
    assert site.once().result is Result.INSTALLED
    assert site.value("sar_agent_keys_lost") == 1
    assert site.say("key-list")["keys"] == []
    assert read_routes_file(site.bridge.dump().path).generation == 3


def test_a_job_that_is_not_there_is_waited_for_and_then_refused(site: Site) -> None:
    assert site.ask(job="77")["state"] == "waiting"
    site.source.records = (*JOBS, job("77", "n003", "n007")._replace(uid=ALICE))
    site.now += 1
    site.agent.serve_keys()
    assert site.say("key", job="77", phase="x", traffic="ring")["state"] == "in_force"
    assert site.ask(job="78")["state"] == "waiting"
    site.now += 100
    site.agent.serve_keys()
    answer = site.say("key", job="78", phase="x", traffic="ring")
    assert answer["error"] == "no job 78 is running"


def test_opensm_restarts_in_the_middle(site: Site) -> None:
    site.bridge.fall_back()
    assert site.ask()["state"] == "waiting"
    assert site.pass_().result is Result.INSTALLED
    site.agent.serve_keys()
    assert site.ask()["offset"] == 2
    site.bridge.away = True
    assert site.ask(phase="y")["state"] == "waiting"
    site.now += 100
    site.agent.serve_keys()
    assert "does not answer" in site.ask(phase="y")["sentence"]
    site.bridge.away = False
    site.bridge.fall_back()
    assert site.pass_().result is Result.INSTALLED
    hosts = slice(site.fabric.terminals)
    again = site.tables()
    assert not np.array_equal(again[2][:, hosts], again[1][:, hosts]), "the key is there again"
