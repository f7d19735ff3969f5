"""Requests for keys are bounded before any work is done for them."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.agent.outcome import Result
from sar_agent.errors import TooMany, Unserved
from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.message import MessageRefused, RefusalReason, parse
from sar_agent.services.keys import flows, tickets
from sar_agent.services.keys import pool as manager
from sar_agent.services.keys.flows import phases_of_wish, rank_hosts
from sar_agent.services.keys.leases import Lease
from sar_agent.services.keys.requests import KeyRequests
from sar_agent.services.keys.tickets import TrafficWish
from sar_agent.util import store
from tests.worlds.key_site import ALICE, BOB, ROOT, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    assert site.pass_().result is Result.INSTALLED
    return site


def test_ranks_and_flows_are_counted_before_they_are_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """: a butterfly of 4 x 262144 ranks took half a second, then was refused."""
    made: list[int] = []
    real = flows.rank_phases
    monkeypatch.setattr(flows, "rank_phases", lambda p, n: made.append(n) or real(p, n))
    for traffic in ("butterfly", "shift:262144", "stencil3d:100x100x100"):
        answer = site.ask(phase=traffic[:4], traffic=traffic, tasks="262144(x4)")
        assert answer["error"] == "tasks '262144(x4)' are more than 1024 ranks of a host"
    assert made == []
    hosts = [f"h{n}" for n in range(400)]
    for traffic in ("butterfly", "ring", "bitcomp", "stencil3d:64x64x64"):
        with pytest.raises(Unserved, match="131072 flows"):
            phases_of_wish(site.fabric, hosts, TrafficWish(traffic, tasks="1024(x400)"))
    with pytest.raises(TooMany, match="1048576 ranks"):
        rank_hosts("1024(x2000)", 2000)
    assert made == []
    assert rank_hosts("0(x0)", 4).tolist() == []
    phases_of_wish(site.fabric, hosts, TrafficWish("stencil2d:2x2", tasks="1024(x400)"))
    assert made == [409600], "a small grid of many ranks is a small pattern"


def request(number: int, job: int, pairs: list[int] | None = None) -> Any:
    body: dict[str, Any] = {"v": 1, "event": "key", "job": str(job), "phase": "p"}
    body |= {"id": f"{number:016x}"} | ({"pairs": pairs} if pairs else {"traffic": "ring"})
    return parse(json.dumps(body, separators=(",", ":")).encode(), KeyRequests.models)


def test_a_user_s_requests_are_bounded_in_number_and_bytes() -> None:
    """4,096 requests of one user took 2.7 GB; another user and root heard `full`."""
    authority = Authority(frozenset({ROOT}))
    desk = KeyRequests(authority)
    authority.known = {str(n): KnownJob(ALICE, None) for n in range(5000)}
    large = [257 + i % 740 for i in range(16000)]
    heard: dict[RefusalReason, int] = {}
    tracemalloc.start()
    try:
        for n in range(400):
            try:
                desk.handle(request(n, n, large if n < 20 else None), ALICE)
            except MessageRefused as refused:
                heard[refused.reason] = heard.get(refused.reason, 0) + 1
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert set(heard) == {RefusalReason.OVERSIZE, RefusalReason.TOO_MANY}
    assert len(desk.pending()) == tickets.MOST_OF_A_UID and kept < 20_000_000
    assert desk.handle(request(9001, 9001), BOB)["state"] == "waiting"
    assert desk.handle(request(9002, 9002), ROOT)["state"] == "waiting"
    assert desk.handle(request(9003, 0), ALICE)["state"] == "waiting", "asked again"
    assert [one.uid for one in desk.pending()][:3] == [ROOT, ALICE, BOB], "in turn"


def test_an_error_of_ours_is_counted_said_once_and_told(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(manager, "make", lambda *_: 1 // 0)
        for n in range(5):
            answer = site.ask(phase=f"p{n}")
            assert answer["sentence"] == "an error of the agent; see its log"
        patched.setattr(site.agent.keys.pool, "apply_orders", lambda: [][1])
        for _ in range(5):
            site.agent.serve_keys()
    assert site.value("sar_agent_unexpected_errors_total", where="keys") == 6, "then it rests"
    assert caplog.text.count("Traceback") == 2
    site.now += 100
    assert site.ask(phase="again")["state"] == "in_force"


def test_any_request_of_a_job_s_owner_is_answered(site: Site) -> None:
    """300 drawn requests: each is answered, and no error of ours."""
    draw = random.Random(14).choice
    traffic = ["none", "ring", "stencil2d:2x2", "stencil3d:1x1x1", "stencil2d:999999x999999",
               "stencil3d:999999x999999x999999", "transpose", "shift:1", "shift:999999", "bitcomp",
               "butterfly", "alltoall", "weight=0.2", "", "nonsense", "ring\0", "stencil2d:0x1",
               "./x", "../../etc/passwd", "shift:4", "stencil2d:",
               "stencil3d:" + "9" * 180]  # fmt: skip
    tasks = [None, "1", "0", "0(x4)", "4", "1(x4)", "2(x2),0,0", "0,0,0,0", "1,1,1,1,1", "999999",
             "999999(x999999)", "1(x0)", "0(x0)", ",", "(", "x", "4(x4", "1(x4),1",
             "00001"]  # fmt: skip
    nodes = [None, "n001", "n001,n005", "n[001-013]", "", "[", "n001,n001", "n[1-2]]", "-",
             "n[001,005,009,013]", "n[9-1]", "n[00000000000000000000001]", "*", "@all",
             "n[1-1000001]", "a[1-1000000000]", "n{1,2}", "é", "n[٣-٥]", "n[1-2][1-2][1-2]",
             "a" * 4000]  # fmt: skip
    pairs = [None, None, [], [0, 1], [0], [0, 0], [1048575, 0], [3, 2, 2, 3] * 100, [0, 4]]
    for n in range(300):
        wish = {"traffic": draw(traffic), "tasks": draw(tasks), "nodes": draw(nodes)}
        wish |= {"pairs": draw(pairs), "lease": draw([None, 1e-9, 1e308])}
        given = {key: value for key, value in wish.items() if value is not None}
        try:
            answer = site.ask(phase=f"p{n % 7}", **given)
        except (
            MessageRefused,
            ValueError,
        ):  # ValueError: pydantic's; the server refuses it
            continue
        site.now += 21
        assert answer.get("state") in ("in_force", "none") or answer["ok"] is False, (given, answer)
        if n % 5 == 4:
            site.say("key-done", ALICE)
    assert site.value("sar_agent_unexpected_errors_total", where="keys") == 0
    assert site.once().ok


def leased(site: Site, count: int) -> None:
    """So many leases of pairs, of Alice's job, without asking for each."""
    [first] = site.agent.keys.pool.leases
    more = []
    for n in range(count):
        update = {"phase": f"more{n}", "offset": 3 + n % 5, "pairs": (0, 1, 1, 2), "traffic": None}
        more.append(Lease.model_validate(first.model_dump() | update))
    site.agent.keys.pool.leases.save(more)
    for one in more:
        made = site.agent.keys.pool.made(first.key)
        assert made is not None
        site.agent.keys.pool._made[one.key] = made


def test_no_key_delays_a_repair_and_all_are_saved_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 leases were once made before any route, and each saved the whole file."""
    site.ask(traffic="shift:2")
    leased(site, 4)
    site.agent.serve_keys()
    order: list[str] = []
    real, write = manager.make, store.write_bytes

    def written(path: Path, *rest: Any) -> None:
        if path.name == "leases.json":
            order.append("save")
        write(path, *rest)

    site.bridge.on_load.append(lambda: order.append("load"))
    monkeypatch.setattr(manager, "make", lambda *w: order.append("key") or real(*w))
    monkeypatch.setattr(store, "write_bytes", written)
    site.cut()
    assert site.pass_().result is Result.INSTALLED
    assert order == ["load"], "the repair, and nothing else"
    assert site.desk.busy and site.say("key-list")["keys"] == []
    hosts = slice(site.fabric.terminals)
    assert np.array_equal(site.tables()[2][:, hosts], site.tables()[1][:, hosts]), "the shelter's"
    order.clear()
    before = site.tables()
    site.agent.serve_keys()
    assert order == [*["key"] * 5, "load", "save"]
    assert len(site.say("key-list")["keys"]) == 5 and not site.desk.busy
    assert set(site.changed(before)) & set(range(2, 8))


def test_keys_that_are_owed_survive_a_restart(site: Site) -> None:
    site.ask(traffic="shift:2")
    site.cut()
    assert site.pass_().result is Result.INSTALLED
    site.restart()
    site.pass_()
    assert site.desk.busy, "the tables in force are not the key's"
    assert site.agent.observer.fabric.value is not None
    digest = site.agent.observer.fabric.value.digest.hex()
    loads = len(site.bridge.loads)
    site.agent.serve_keys()
    assert len(site.bridge.loads) == loads + 1
    assert site.say("key-list")["keys"][0]["offset"] == 2
    assert [one.fabric for one in site.agent.keys.pool.leases] == [digest]
    site.restart()
    site.pass_()
    assert not site.desk.busy, "they are in force"


def test_a_key_whose_offset_is_gone_is_lost_in_a_sentence(site: Site) -> None:
    """It was neither in force nor lost, so its client was told to wait for as long as it asked."""
    site.ask(traffic="shift:2")
    leases = site.agent.keys.pool.leases
    leases.save([lease.model_copy(update={"offset": 100}) for lease in leases])
    site.restart()
    site.pass_()
    site.agent.serve_keys()
    assert [one.lost for one in site.agent.keys.pool.leases] == [
        f"OpenSM runs with LMC {site.lmc} now"
    ]


def test_keys_that_are_owed_and_refused_are_tried_ever_less_often(site: Site) -> None:
    site.ask(traffic="shift:2")
    site.cut()
    site.pass_()
    assert site.say("key-done", phase="none").get("ok") is False
    loads = len(site.bridge.loads)
    site.bridge.refuse = ["stale (test)"] * 20
    at = site.now
    while site.now < at + 30:
        if site.desk.busy:
            site.agent.serve_keys()
        site.now += 0.2
    assert 3 <= len(site.bridge.loads) - loads <= 7
    site.bridge.refuse = []
    site.now += 60
    site.agent.serve_keys()
    assert site.say("key-list")["keys"][0]["offset"] == 2


def test_a_key_that_is_owed_can_be_given_back(site: Site) -> None:
    site.ask(traffic="shift:2")
    site.cut()
    site.pass_()
    assert site.say("key-done", phase="x")["phases"] == ["x"]
    site.agent.serve_keys()
    assert site.value("sar_agent_key_leases") == 0 and not site.desk.busy
