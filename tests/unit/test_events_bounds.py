"""Limits on users of the message server: quotas, rates, owners, modes.
Requests for keys: tests/unit/test_keys_bounds.py."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from sar_agent.errors import Unavailable
from sar_agent.events.answers import decode_answer
from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.dispatch import Dispatcher
from sar_agent.events.message import Event, MessageRefused
from sar_agent.events.rate import TokenBuckets
from sar_agent.events.server import listen_unix
from sar_agent.keys.requests import KeyRequest, KeyRequests
from tests.worlds.event_clients import ALICE, BOB, ROOT, Ear, decode, dial, message, signed


@pytest.fixture
def ear() -> Ear:
    return Ear()


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
