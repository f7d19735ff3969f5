"""Which messages of Slurm's hooks are believed; with real munge: tests/live/test_message_server."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from sar_agent.errors import Unavailable
from sar_agent.events.answers import decode_answer
from sar_agent.events.authority import Authority
from sar_agent.events.dispatch import JobEvents
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import Event
from sar_agent.events.server import MessageServer, listen_tcp, listen_unix
from sar_lab.live.process import free_port, wait_until
from tests.worlds.event_clients import ROOT, Ear, decode, dial, message, signed


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
