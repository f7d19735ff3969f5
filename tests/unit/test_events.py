"""Which messages of Slurm's hooks are believed; limits on users of the message server: quotas,
rates, owners, modes. With real munge: tests/live/test_message_server; requests for keys:
tests/unit/test_keys_bounds.py."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sar_agent.errors import Unavailable
from sar_agent.events.answers import decode_answer
from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.dispatch import Dispatcher, JobEvents
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import Event, MessageRefused
from sar_agent.events.rate import TokenBuckets
from sar_agent.events.server import MessageServer, listen_tcp, listen_unix
from sar_agent.services.keys.requests import KeyRequest, KeyRequests
from sar_agent.util.quota import Bound, Quota
from sar_lab.live.process import free_port, wait_until
from tests.worlds.event_clients import ALICE, BOB, ROOT, Ear, decode, dial, message, signed


@pytest.fixture
def ear() -> Ear:
    return Ear()


NO_MESSAGES = [
    (b"", "garbage"),
    (b"GET / HTTP/1.1\r", "garbage"),
    (b"MUNGE:0:\0", "garbage"),
    (signed(0, "no JSON"), "garbage"),
    (signed(0, "[1]"), "garbage"),
    (signed(0, "NaN"), "garbage"),
    (signed(0, message(v=2)), "garbage"),
    (signed(0, message(job="7; rm -rf /")), "garbage"),
    (signed(0, message(job=7)), "garbage"),
    (signed(0, message(at=float("nan"))), "garbage"),
    (signed(0, message(user=-1)), "garbage"),
    (signed(0, message(id="short")), "garbage"),
    (signed(0, message(event="stop")), "garbage"),
    (signed(0, message(nodes="n" * 5000)), "oversize"),
    (b"MUNGE:away:", "no_munge"),
]


# Each has an id of its own making, which would be another test in each process.
@pytest.mark.parametrize(("line", "why"), NO_MESSAGES, ids=range(len(NO_MESSAGES)))
def test_malformed_messages_are_refused(ear: Ear, line: bytes, why: str) -> None:
    answer = decode_answer(ear.dispatcher.answer(line, "tcp"))
    assert answer["ok"] is False and answer["error"]
    assert len(json.dumps(answer)) < 4000
    assert ear.refused(why) == 1
    assert ear.inbox.pending() is None


def test_the_inbox_stays_small_and_still_wakes() -> None:
    ear = Ear(most=3)
    for _ in range(100):
        assert ear.say(ROOT, message(job="1"))["ok"]
    assert len(ear.inbox) == 1
    answers = [ear.say(ROOT, message(job=str(n))) for n in range(10)]
    assert len(ear.inbox) == 3
    assert not answers[-1]["ok"] and ear.refused("full") == 7
    ear.inbox.drain()
    assert ear.say(ROOT, message(job="99"))["ok"]


@pytest.fixture
def server(ear: Ear, tmp_path: Path) -> Any:
    made = MessageServer(ear.dispatcher, [listen_unix(tmp_path / "s")], patience=0.3, places=20)
    made.start()
    yield tmp_path / "s"
    made.stop()


def ask(path: Path, *pieces: bytes) -> bytes:
    with dial(path) as stream:
        for piece in pieces:
            stream.sendall(piece)
        return stream.makefile("rb").read()


def test_a_key_s_variables_go_before_the_site_s_and_a_start_that_waits_has_none() -> None:
    """A start without an environment makes the job's steps ask for all of it."""
    site = {"UCX_IB_SL": "1", "UCX_IB_LID_PATH_BITS": "0"}
    own: dict[str, object] = {"env": {"UCX_IB_LID_PATH_BITS": "2"}}
    jobs = JobEvents(Authority(frozenset({ROOT})), Inbox(), site, lambda event, uid: own)
    start = Event.model_validate(message())
    assert jobs.handle(start, ROOT)["env"] == {"UCX_IB_SL": "1", "UCX_IB_LID_PATH_BITS": "2"}
    own.clear()
    own["wait"] = 0.05
    later = Event.model_validate(message(id="f" * 16))
    assert jobs.handle(later, ROOT) == {"wait": 0.05}
    hint = Event.model_validate(message(event="hint", id="e" * 16))
    assert jobs.handle(hint, ROOT) == {"wait": 0.05, "env": site}


def test_a_line_without_end_is_cut_off(ear: Ear, server: Path) -> None:
    with dial(server) as stream:
        stream.sendall(b"MUNGE:" + b"x" * 98298)
        assert "98304" in decode_answer(stream.makefile("rb").read())["error"]
    assert ear.refused("oversize") == 1
    with dial(server) as stream:
        stream.sendall(b"MUNGE:0:")
        stream.shutdown(socket.SHUT_WR)
        assert decode_answer(stream.makefile("rb").read())["ok"] is False
    assert ear.refused("garbage") == 1


def test_silent_clients_are_cut_off_and_make_place(ear: Ear, server: Path) -> None:
    silent = [dial(server) for _ in range(60)]  # three times the places
    assert decode_answer(ask(server, signed(ROOT, message()) + b"\n"))["ok"]
    assert wait_until(lambda: ear.refused("slow") == 60, 10)
    for stream in silent:
        with stream, pytest.raises((ConnectionResetError, BrokenPipeError)):
            while stream.recv(1) or True:
                stream.sendall(b"x")


def test_a_munge_that_hangs_stops_nothing_else(ear: Ear, server: Path) -> None:
    go = threading.Event()

    def hang(line: bytes) -> tuple[int, bytes]:
        assert go.wait(60)
        return decode(line)

    ear.dispatcher.decode = hang
    waiting = [dial(server) for _ in range(8)]
    for n, stream in enumerate(waiting):
        stream.sendall(signed(ROOT, message(job=str(n))) + b"\n")
    try:
        assert b"no complete line" not in ask(server, b"x" * 99000), "noise is answered meanwhile"
    finally:
        go.set()
    for stream in waiting:
        with stream:
            assert decode_answer(stream.makefile("rb").read())["ok"]
    assert len(ear.inbox) == 8


def test_a_port_in_use_is_one_sentence_and_an_old_socket_is_replaced(tmp_path: Path) -> None:
    port = free_port()
    with (
        listen_tcp("127.0.0.1", port),
        pytest.raises(Unavailable, match=r"cannot listen for events on 127.*events\.tcp_address"),
    ):
        listen_tcp("127.0.0.1", port)
    listen_unix(tmp_path / "s").close()
    listen_unix(tmp_path / "s").close()
    (tmp_path / "file").write_text("not ours")
    with pytest.raises(Unavailable, match=r"events\.socket"):
        listen_unix(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "not ours"


def test_a_bug_in_judging_is_answered_and_logged(
    ear: Ear, server: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ear.dispatcher.decode = lambda line: (_ for _ in ()).throw(ZeroDivisionError)
    assert decode_answer(ask(server, signed(ROOT, message()) + b"\n"))["ok"] is False
    assert "this is an error of sar-agent" in caplog.text
    ear.dispatcher.decode = decode
    assert decode_answer(ask(server, signed(ROOT, message()) + b"\n"))["ok"]


def test_ranges_without_end_are_a_refusal_not_an_error(ear: Ear) -> None:
    """Each of these was an OverflowError once."""
    desk = KeyRequests(ear.authority)
    ear.jobs.job_answer = desk.of_job
    for digits in (400, 3900):
        nodes = f"n[0-{'9' * digits}]"
        answer = ear.say(ALICE, message(event="hint", traffic="ring", nodes=nodes))
        assert answer["ok"] and "is not a Slurm host list" in answer["note"]
    many = ear.say(ALICE, message(event="hint", traffic="ring", nodes="n[1-99999999]"))
    assert "names more than 65536 hosts" in many["note"]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_the_socket_has_its_mode_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        if mask == 0o777:
            (tmp_path / "there").mkdir()
            (tmp_path / "there").chmod(0o755)
        with listen_unix(tmp_path / "there" / "s" if mask == 0o777 else tmp_path / "s") as one:
            path = Path(tmp_path / "there" / "s" if mask == 0o777 else tmp_path / "s")
            assert path.stat().st_mode & 0o777 == 0o666
            assert [p.name for p in path.parent.iterdir()] == ["s"], "nothing is left behind"
            with dial(path):
                one.setblocking(True)
                one.accept()[0].close()
    finally:
        os.umask(before)


def test_a_path_too_long_for_clients_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"path too long.*events\.socket"):
        listen_unix(tmp_path / ("x" * 110))


def test_one_uid_s_jobs_leave_room_for_others_and_for_root() -> None:
    ear = Ear(most=400)

    def hints(uid: int, count: int, first: int) -> list[bool]:
        given = [message(event="hint", job=str(first + n), traffic="ring") for n in range(count)]
        return [ear.say(uid, one)["ok"] for one in given]

    assert sum(hints(ALICE, 500, 1000)) == 300, "three quarters are for users"
    assert not hints(BOB, 1, 5000)[0] and ear.refused("full")
    assert sum(ear.say(ROOT, message(job=str(n)))["ok"] for n in range(100)) == 100
    ear = Ear()
    assert sum(hints(ALICE, 4500, 1000)) == 4096
    assert all(hints(BOB, 50, 9000)) and ear.refused("too_many") == 404


def test_a_message_is_not_believed_again_after_many_others() -> None:
    """Ids are kept in two generations, and the older one counts until it is dropped whole."""
    authority = Authority(frozenset({ROOT}), remembered=2)
    said = [Event.model_validate(message(id=f"{n:016x}")) for n in range(4)]
    for one in said[:3]:
        authority.check_event(one, ROOT)
    for again in said[:3]:
        with pytest.raises(MessageRefused, match="received before"):
            authority.check_event(again, ROOT)
    authority.check_event(said[3], ROOT)


def test_too_often(ear: Ear) -> None:
    now = 0.0
    ear.dispatcher.rate = TokenBuckets(clock=lambda: now)
    ear.authority.known = {"7": KnownJob(ALICE, "ring"), "8": KnownJob(BOB, "ring")}
    hint = {"event": "hint", "traffic": "ring"}
    parsed: list[bytes] = []
    ear.dispatcher.decode = lambda line: (parsed.append(line), decode(line))[1]
    said = [ear.say(ALICE, message(**hint))["ok"] for _ in range(5500)]
    assert sum(said) == 5000 and ear.refused("too_often") == 500
    assert ear.say(BOB, message(job="8", **hint))["ok"]
    assert ear.say(ROOT, message())["ok"]
    count = len(parsed)
    line = signed(ALICE, message(**hint))
    assert b"too much" in ear.dispatcher.answer(line, "unix", ALICE)
    assert len(parsed) == count, "whom the kernel names is not even decoded"
    now = 1.0
    assert sum(ear.say(ALICE, message(**hint))["ok"] for _ in range(600)) == 500
    for uid in range(10_000):
        ear.dispatcher.rate.allow(uid)
    assert len(ear.dispatcher.rate._left) <= 4096


def test_a_long_message_that_is_wrong_is_read_to_its_first_error(
    ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    """21,700 errors were once collected, 73 ms, before any quota was asked."""
    wrong = json.dumps(message(event="key", phase="x", pairs=[-1] * 16000)).encode()
    with pytest.raises(ValidationError) as caught:
        KeyRequest.model_validate_json(wrong)
    assert caught.value.error_count() == 1

    desk = KeyRequests(ear.authority)
    dispatcher = Dispatcher(decode, ear.jobs, ear.counters, [desk])
    ear.authority.known = {str(n): KnownJob(ALICE, None) for n in range(1000)}
    for n in range(256):
        key = message(event="key", job=str(n), phase="x", traffic="ring")
        assert decode_answer(dispatcher.answer(signed(ALICE, key), "tcp"))["ok"]
    key = message(event="key", job="999", phase="x", pairs=[0, 1] * 8000)
    assert "requests for keys of uid" in dispatcher.answer(signed(ALICE, key), "tcp").decode()
    assert b"at most 4096 bytes" in dispatcher.answer(
        signed(ALICE, message(nodes="n" * 60000)), "tcp"
    )


def test_parts_of_one_of_all_and_of_those_who_are_trusted() -> None:
    quota = Quota(10, 4, kept=3, trusted={0})
    assert [quota.try_add(1) for _ in range(5)] == [None] * 4 + [Bound.ONE]
    assert [quota.try_add(2) for _ in range(4)] == [None] * 3 + [Bound.ALL]
    assert [quota.try_add(0) for _ in range(4)] == [None] * 3 + [Bound.ALL]
    quota.give(1)
    assert quota.lacks(2) is None and quota.try_add(0) is None and quota.try_add(2) is Bound.ALL
    quota.clear()
    assert quota.try_add(1, 4) is None and quota.lacks(1, 4, instead=4) is None
    quota.give(1, 4)
    assert not quota.of, "nobody is remembered who has nothing"


def test_a_waiting_client_gets_the_next_free_place() -> None:
    quota = Quota(1, 1)
    assert quota.try_add("a") is None and quota.try_add("b", patience=0.01) is Bound.ALL
    threading.Timer(0.05, quota.give, ("a",)).start()
    assert quota.try_add("b", patience=60) is None
