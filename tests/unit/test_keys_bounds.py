"""What users may ask of the key desk: bounds before work. Reproductions of a review are named."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.agent import install_keys as serve
from sar_agent.agent.outcome import Result
from sar_agent.errors import InputError, TooMany, Unserved
from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.message import MessageRefused, RefusalReason, parse
from sar_agent.jobs.record import JobRecord
from sar_agent.keys import flows, tickets
from sar_agent.keys import pool as manager
from sar_agent.keys.flows import hosts_of, phases_of_wish, rank_hosts
from sar_agent.keys.leases import Lease
from sar_agent.keys.requests import KeyRequests
from sar_agent.keys.tickets import TrafficWish
from sar_agent.slurm import hostlist
from sar_agent.util import store
from tests.unit.test_keys import ALICE, BOB, ROOT, Site

MALLORY = 1666
RECORD = JobRecord("1", ("n1", "n2"), "RUNNING", uid=ALICE, raw=("1",))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    assert site.pass_().result is Result.INSTALLED
    return site


@pytest.mark.parametrize(
    "nodes",
    [
        "a[1-1000000]",
        ",".join(["a[1-1000000]"] * 2000),
        "a[1-1000][1-1000][1-1000]",
        "n[1-2],n[1-2]",
        "n[1-3]",
        "n" + "[1-2]" * 4000,
    ],
    ids=range(6),
)
def test_a_host_list_is_counted_before_it_is_expanded(nodes: str) -> None:
    """e4_hostlist.py: 12 bytes took 1.4 s and 185 MB, and the names stayed."""
    kept = hostlist._namer.cache_info().currsize
    tracemalloc.start()
    try:
        with pytest.raises(TooMany, match="names more than 2 hosts"):
            hosts_of(RECORD, nodes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    assert hostlist._namer.cache_info().currsize == kept


@pytest.mark.parametrize(
    "nodes",
    [
        "n[0-" + "9" * 400 + "]",
        "n[" + "9" * 5000 + "]",
        "n[3-1]",
        "n[1-2",
        "@all",
        "n1,,n2",
        "[" * 9000,
    ],
    ids=range(7),
)
def test_what_is_no_host_list(nodes: str) -> None:
    with pytest.raises(InputError):
        hosts_of(RECORD, nodes)
    with pytest.raises(InputError):
        hostlist.expand(nodes)


def test_few_are_expanded_as_always() -> None:
    for text in ("n[1-2]", "n[08-012],x", "r[1-2]n[01-02]-ib", "r[1,08-9]n[1-2]-ib,[3-4],a", ""):
        assert hostlist.expand_few(text, 100) == hostlist.expand(text)
    assert hosts_of(RECORD, "n[2,1]") == ("n2", "n1")
    with pytest.raises(InputError, match="n3 is no host of job 1"):
        hosts_of(RECORD, "n3")


def test_all_of_a_queue_s_host_list_is_bounded() -> None:
    with pytest.raises(InputError, match="more than 1000000"):
        hostlist.expand("a[1-999999],b[1-999999]")


def test_ranks_and_flows_are_counted_before_they_are_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """e2_squeue.py, E3: a butterfly of 4 x 262144 ranks took half a second, then was refused."""
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


def test_one_look_at_the_queue_for_all_that_wait(site: Site) -> None:
    """e2_squeue.py: 100 requests of a user without any job were 100 calls of squeue, and again."""
    looks, real = 0, site.source.poll

    def poll() -> Any:
        nonlocal looks
        looks += 1
        site.now += 0.05  # what squeue takes
        return real()

    site.source.poll = poll  # type: ignore[method-assign]
    for n in range(30):
        site.say("key", MALLORY, job=str(800000 + n), phase="x", traffic="ring")
    site.agent.serve_keys()
    assert looks == 1
    for _ in range(10):
        site.agent.serve_keys()
    assert looks == 1, "not again at once"
    at = site.now
    while site.now < at + 5:
        site.now += 0.2
        site.agent.serve_keys()
    assert looks <= 11, "a tenth of the loop's time at most"
    site.now += 11
    site.agent.serve_keys()
    answer = site.say("key", MALLORY, job="800000", phase="x", traffic="ring")
    assert answer["error"] == "no job 800000 is running"


def test_nobody_is_told_that_his_job_does_not_run_where_slurm_was_silent(site: Site) -> None:
    site.say("key", ALICE, job="77", phase="x", traffic="ring")
    site.source.away = "squeue: no answer (test)"
    site.now += 11
    site.agent.serve_keys()
    answer = site.say("key", ALICE, job="77", phase="x", traffic="ring")
    assert answer["sentence"] == "Slurm's queue could not be read in time"


def request(number: int, job: int, pairs: list[int] | None = None) -> Any:
    body: dict[str, Any] = {"v": 1, "event": "key", "job": str(job), "phase": "p"}
    body |= {"id": f"{number:016x}"} | ({"pairs": pairs} if pairs else {"traffic": "ring"})
    return parse(json.dumps(body, separators=(",", ":")).encode(), KeyRequests.models)


def test_a_user_s_requests_are_bounded_in_number_and_bytes() -> None:
    """e1_desk.py: 4,096 requests of one user took 2.7 GB; another user and root heard `full`."""
    authority = Authority(frozenset({ROOT}))
    desk = KeyRequests(authority)
    authority.known = {str(n): KnownJob(ALICE, None) for n in range(5000)}
    large = [257 + i % 740 for i in range(16000)]
    heard: dict[RefusalReason, int] = {}
    tracemalloc.start()
    try:
        for n in range(400):
            try:
                desk.take(request(n, n, large if n < 20 else None), ALICE)
            except MessageRefused as refused:
                heard[refused.reason] = heard.get(refused.reason, 0) + 1
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert set(heard) == {RefusalReason.OVERSIZE, RefusalReason.TOO_MANY}
    assert len(desk.pending()) == tickets.MOST_OF_A_UID and kept < 20_000_000
    assert desk.take(request(9001, 9001), BOB)["state"] == "waiting"
    assert desk.take(request(9002, 9002), ROOT)["state"] == "waiting"
    assert desk.take(request(9003, 0), ALICE)["state"] == "waiting", "asked again"
    assert [one.uid for one in desk.pending()][:3] == [ROOT, ALICE, BOB], "in turn"


def test_all_users_together_leave_room_for_root() -> None:
    authority = Authority(frozenset({ROOT}))
    desk = KeyRequests(authority)
    refused, number = 0, 0
    for uid in range(2000, 2200):
        for _ in range(tickets.MOST_UNSEEN + 1):
            number += 1
            try:
                desk.take(request(number, number), uid)
            except MessageRefused:
                refused += 1
    assert len(desk.pending()) == tickets.MOST - tickets.RESERVED
    for _ in range(tickets.RESERVED):
        number += 1
        assert desk.take(request(number, number), ROOT)["state"] == "waiting"
    with pytest.raises(MessageRefused, match="4096 requests"):
        desk.take(request(number + 1, number + 1), ROOT)
    assert refused == 200 * (tickets.MOST_UNSEEN + 1) - (tickets.MOST - tickets.RESERVED)


def test_the_leases_of_a_job_and_of_a_user_are_bounded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MOST_OF_A_JOB", 2)
    monkeypatch.setattr(manager, "MOST_RANKS_OF_A_UID", 4)
    assert site.ask(phase="a", traffic=None, pairs=[0, 1, 1, 2])["state"] == "in_force"
    assert "ranks in their pairs" in site.ask(phase="b", traffic=None, pairs=[0, 1])["sentence"]
    assert site.ask(phase="c")["state"] == "in_force"
    assert site.ask(phase="d")["sentence"] == "job 1 has 2 routing keys already"
    assert site.ask(BOB, job="2")["state"] == "in_force"


def test_a_turn_ends_when_its_time_is_over(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left waits for the next turn; passes come between."""
    made = 0
    real = manager.make

    def make(*words: Any) -> Any:
        nonlocal made
        made += 1
        site.now += serve.BUDGET / 2
        return real(*words)

    monkeypatch.setattr(manager, "make", make)
    for n in range(6):
        site.say("key", ALICE, phase=f"p{n}", traffic=f"shift:{1 + n % 3}")
    counts = []
    for _ in range(4):
        site.agent.serve_keys()
        site.agent.serve_keys()  # not again at once
        site.now += 2 * serve.BUDGET
        counts.append(made)
    assert counts == [2, 4, 6, 6]
    assert site.value("sar_agent_key_leases") == 6


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
    """e6_fuzz.py: 300 drawn requests; nothing but answers, and no error of ours."""
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
        ):  # ValueError: pydantic's; the door makes a refusal of it
            continue
        site.now += 20
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
    site.agent.keys.pool.leases.put(more)
    for one in more:
        made = site.agent.keys.pool.made(first.key)
        assert made is not None
        site.agent.keys.pool._made[one.key] = made


def test_no_key_delays_a_repair_and_all_are_saved_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """e20_repair.py: 60 leases were made before any route, and each saved the whole file."""
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
    leases.put([lease.model_copy(update={"offset": 100}) for lease in leases])
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


def test_refusals_for_size_are_counted(site: Site) -> None:
    heard: list[RefusalReason] = []
    site.authority.refused = lambda why, sentence: heard.append(why)
    assert "names more than 4 hosts" in site.ask(phase="a", nodes="n[1-5]")["error"]
    assert "is of more hosts" in site.ask(phase="b", tasks="2(x9)")["error"]
    assert heard == [RefusalReason.TOO_MANY] * 2
