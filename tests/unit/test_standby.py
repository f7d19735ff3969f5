"""Two agents without OpenSM: which state counts, what is copied, and what is refused."""

from __future__ import annotations

import io
import json
import socket
import ssl
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from sar_agent.formats.routes_file import read_generation
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.standby.channel import PeerProblem
from sar_agent.standby.peer_client import PeerClient, PeerState
from sar_agent.standby.run import number_above
from sar_agent.standby.snapshot import CONNECTIONS
from sar_agent.standby.terms import LARGEST_BELIEVED, Claim, Precedence, TermRecord, precedence
from tests.worlds.standby_sides import Side, routes_image

A, B = "a" * 16, "b" * 16


def claim(node: str = A, **values: Any) -> Claim:
    return Claim.model_validate(
        {
            "node": node,
            "name": "host-" + node[0],
            "master": False,
            "term": 1,
            "holder": node,
            "generation": 5,
            "highest": 5,
            "decided": 0.0,
        }
        | values
    )


@pytest.mark.parametrize(
    ("own", "peer", "expected"),
    [
        # A standby copies the state of the term that is on.
        (claim(A, term=0, holder="", generation=0), claim(B), "ADOPT"),
        (claim(A, term=1, holder=B), claim(B, master=True), "ADOPT"),
        (claim(A, term=1, holder=B), claim(B, generation=6), "ADOPT"),
        (claim(A, term=1, holder=A, generation=9), claim(B, term=2), "ADOPT"),
        # Not an older one, nor its own from the peer, nor none.
        (claim(A, term=2, holder=A), claim(B, term=1), "OWN"),
        (claim(A, term=2, holder=A), claim(B, term=2, holder=A, generation=9), "OWN"),
        (claim(A, term=1, holder=B), claim(B, term=3, generation=0), "OWN"),
        (claim(A, term=1, holder=B, generation=6), claim(B, generation=5), "REFUSE"),
        # Both are from before there were two agents.
        (claim(A, term=0, holder=""), claim(B, term=0, holder="", generation=6), "ADOPT"),
        (claim(A, term=0, holder=""), claim(B, term=0, holder="", generation=4), "OWN"),
        # Both took term 4, apart from each other: the master's, else the higher generation.
        (claim(A, term=4), claim(B, term=4, master=True, generation=2), "ADOPT"),
        (claim(A, term=4, generation=7), claim(B, term=4, generation=8), "ADOPT"),
        (claim(A, term=4, generation=8), claim(B, term=4, generation=7), "OWN"),
        (claim(A, term=4), claim(B, term=4), "ADOPT"),
        (claim(B, term=4), claim(A, term=4), "OWN"),
        # A master's agent copies nothing.
        (claim(A, master=True), claim(B, term=9, master=True), "OWN"),
        (claim(A, master=True, term=2), claim(B, term=1), "OWN"),
        (claim(A, master=True, term=2), claim(B, term=2, holder=A), "OWN"),
        (claim(A, master=True, term=2), claim(B, term=2), "RAISE"),
        (claim(A, master=True, term=2), claim(B, term=3), "RAISE"),
    ],
)
def test_the_state_with_precedence(own: Claim, peer: Claim, expected: str) -> None:
    assert precedence(own, peer) is Precedence[expected]


def test_a_standby_copies_all_that_matters(sides: tuple[Side, Side]) -> None:
    a, b = sides
    assert a.lead().term == 1
    for generation in (3, 4):
        a.put(generation)
    (a.state / "hints.json").write_text('[{"job":"1","uid":1000,"traffic":"ring","at":5.0}]')
    (a.state / "levels.bin").write_bytes(levels_file())
    (a.state / "update.json").write_text("{}")
    (a.state / "agent.lock").write_text("a")
    (b.state / "subscribers.jsonl").write_text("")
    (b.state / "leases.json").write_text("[]")
    assert b.link.exchange()
    for name in ("state.json", "hints.json", "levels.bin", "generations/3.sar"):
        assert (b.state / name).read_bytes() == (a.state / name).read_bytes()
    assert (b.run / "routes.sar").read_bytes() == (a.run / "routes.sar").read_bytes()
    assert (b.numbers(), b.generation()) == ([3, 4], 4)
    gone = ("update.json", "subscribers.jsonl", "leases.json", "agent.lock", "received")
    assert not [name for name in gone if (b.state / name).exists()]
    assert [r.generation for r in b.link.history.last(9)] == [4, 3]
    assert (b.state / "state.json").stat().st_mode & 0o777 == 0o640
    assert (b.run / "routes.sar").stat().st_mode & 0o777 == 0o644
    assert b.link.terms.load().term == 1

    adopted = b.link.report.adopted
    assert b.link.exchange() and b.link.report.adopted == adopted, "nothing is new"
    a.put(5)
    (a.state / "generations/3.sar").unlink()
    (a.state / "hints.json").unlink()
    assert b.link.exchange() and b.link.report.adopted == adopted + 1
    assert b.numbers() == [4, 5] and not (b.state / "hints.json").exists()
    (b.run / "routes.sar").unlink()  # as a reboot does
    assert b.link.exchange() and read_generation(b.run / "routes.sar") == 5


def test_a_takeover_and_the_way_back(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.lead()
    a.put(3)
    assert b.link.exchange()
    a.follow()
    assert b.lead().term == 2 and b.generation() == 3
    for name in CONNECTIONS:
        (a.state / name).write_text("of term 1")
    assert a.link.exchange() and a.link.report.adopted == 0, "the files are the same"
    assert not [name for name in CONNECTIONS if (a.state / name).exists()]
    b.put(4)
    assert a.link.exchange() and a.generation() == 4 and a.link.terms.load().term == 2
    b.follow()
    assert a.lead().term == 3
    assert a.lead().term == 3, "an agent that starts again goes on in its term"
    assert b.link.exchange() and b.link.terms.load().term == 3
    assert {r.generation for r in a.link.history.last(9)} == {3, 4}


def _older(a: Side) -> None:
    (a.run / "routes.sar").write_bytes(routes_image(2))


def _broken(a: Side) -> None:
    (a.run / "routes.sar").write_bytes(routes_image(5)[:-9] + b"123456789")


def _wrong_number(a: Side) -> None:
    (a.state / "generations/9.sar").write_bytes(routes_image(8))


def _no_list(a: Side) -> None:
    (a.state / "leases.json").write_text("{}")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_older, "its routes file holds generation 2, and this agent has generation 4 of the same"),
        (_broken, "is refused: routes.sar: "),
        (_wrong_number, "generations/9.sar holds generation 8"),
        (_no_list, "leases.json has another format"),
    ],
)
def test_a_state_that_cannot_be_used_is_refused_whole(
    led: tuple[Side, Side],
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[Side], None],
    sentence: str,
) -> None:
    a, b = led
    assert b.link.exchange()
    before = {p: p.read_bytes() for p in (*b.state.rglob("*.sar"), b.run / "routes.sar",
                                          b.state / "state.json")}  # fmt: skip
    (a.state / "hints.json").write_text("[]")
    spoil(a)
    assert not b.link.exchange() and not b.link.exchange()
    assert sentence in b.link.report.problem
    assert len([m for m in caplog.messages if sentence in m]) == 1, "logged once"
    assert {p: p.read_bytes() for p in before} == before
    assert not (b.state / "hints.json").exists()
    assert b.link.report.refused == 2


def test_a_lower_generation_of_the_same_term_is_refused(led: tuple[Side, Side]) -> None:
    a, b = led
    assert b.link.exchange()
    a.write_state(3)
    assert not b.link.exchange()
    assert "says generation 3, and this agent has generation 4" in b.link.report.problem
    assert b.generation() == 4


def test_messages_of_the_peer_are_bounded(
    led: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = led
    good = {"name": "state.json", "size": 1, "digest": "0" * 64}
    names = {"name": "../../etc/passwd"}, {"name": "state.json", "size": 2**26 + 1}
    lists = [[good | wrong] for wrong in (*names, {"name": "generations/01.sar"}, {"digest": "x"})]
    for files in (*lists, [good, good | {"size": 2}]):
        answer = {"claim": a.link.claim().model_dump(), "files": files}
        client = PeerClient(("127.0.0.1", 1), ssl.create_default_context())
        monkeypatch.setattr(client, "_get", lambda *_, answer=answer: json.dumps(answer).encode())
        with pytest.raises(PeerProblem, match="another format"):
            client.look()


def test_files_that_change_while_they_are_copied_are_copied_again(
    led: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = led
    look, looks = b.link.client.look, []

    def look_before_a_change() -> PeerState:
        found = look()
        looks.append(found)
        if len(looks) == 1:
            a.put(5)
            (a.state / "generations/4.sar").unlink()
        return found

    monkeypatch.setattr(b.link.client, "look", look_before_a_change)
    assert b.link.exchange(), b.link.report.problem
    assert len(looks) == 2 and (b.generation(), b.numbers()) == (5, [5])


def test_silence_is_logged_though_the_answer_before_was_of_no_use(
    led: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = led
    with monkeypatch.context() as patch:
        patch.setattr(b.link.client, "_get", lambda *_: b"{}")
        assert not b.link.exchange()
    a.server.stop()
    for _ in range(3):
        assert not b.link.exchange()
    assert "an answer of another format" in caplog.text
    assert caplog.text.count("the other agent does not answer at") == 1


def levels_file(**arrays: Any) -> bytes:
    """As the agent writes it, with these arrays instead."""
    whole: dict[str, Any] = {
        "nodes": np.arange(8, dtype=np.uint64), "terminals": 4,
        "all": np.ones((1, 8), np.uint16), "at": np.zeros(1, np.int64),
        "rows": np.ones((1, 4), np.uint16), "until": 5.0, "foreign": False,
    }  # fmt: skip
    out = io.BytesIO()
    save = np.savez_compressed if arrays.pop("packed", False) else np.savez
    save(out, **{f"{name}0": value for name, value in (whole | arrays).items()})
    return zlib.compress(out.getvalue())


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (levels_file(), ""),
        (b"no levels", "incorrect header"),
        (levels_file()[:-9], "cut off"),
        (levels_file(packed=True), "packed twice"),
        (levels_file(at=np.array([99])), "do not fit"),
        (levels_file(nodes=np.arange(8.0)), "other types"),
        (levels_file(terminals=9), "do not fit"),
        (levels_file(until=np.nan), "not numbers"),
        (zlib.compress(b"no archive"), "not a zip file"),
    ],
    ids=range(9),
)
def test_levels_of_the_peer_are_looked_at_before_they_are_taken(
    led: tuple[Side, Side], image: bytes, why: str
) -> None:
    a, b = led
    (a.state / "levels.bin").write_bytes(image)
    assert b.link.exchange() == (not why), b.link.report.problem
    assert why in b.link.report.problem
    assert (b.state / "levels.bin").exists() == (not why)


def test_an_agent_that_takes_over_takes_the_last_state_first(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.lead()
    a.put(3)
    assert b.link.exchange()
    a.put(4)
    a.follow()
    b.lead()
    assert b.generation() == 4
    assert read_generation(b.run / "routes.sar") == 3, "OpenSM has begun with it already"


@pytest.mark.parametrize("what", ["term", "highest", "generation"])
def test_a_peer_s_numbers_leave_room_above_them(what: str) -> None:
    """A term of 2^63 - 1 was believed, and `standby.json` with the next one could not be read."""
    with pytest.raises(ValidationError):
        claim(**{what: 2**63 - 1})
    believed = claim(**{what: LARGEST_BELIEVED})
    record = TermRecord(term=believed.term + 1, highest=believed.highest + 1)
    assert TermRecord.model_validate_json(record.model_dump_json()) == record


def test_after_a_split_the_masters_state_counts(
    sides: tuple[Side, Side], caplog: pytest.LogCaptureFixture
) -> None:
    a, b = sides
    a.lead()
    a.put(3)
    assert b.link.exchange()
    b.role = "master"  # its half of the fabric has no other
    b.installs = True
    b.link.terms.write(
        b.link.terms.load().model_copy(update={"term": 2, "holder": b.link.terms.load().node})
    )
    for generation in (4, 5, 6):
        b.put(generation)
    a.put(4)
    assert a.link.exchange() and b.link.exchange()
    assert "is a master, too" in caplog.text
    assert (a.generation(), b.generation()) == (4, 6)
    b.follow()
    caplog.clear()
    assert a.link.exchange()
    assert a.link.terms.load().term == 3 and a.generation() == 4
    assert "has had a term of its own (2, generation 6)" in caplog.text
    assert b.link.exchange()
    assert (b.generation(), b.numbers()) == (4, [3, 4])
    assert [line for line in caplog.messages if line.startswith("the state of")] == [
        f"the state of {socket.gethostname()} counts now (term 3, generation 4): its OpenSM became "
        "the master after this one, whose state (term 2, generation 6) is replaced"
    ]
    # The plugin of b has had 6 in force, and would refuse 5.
    assert a.link.terms.load().highest == 6
    manager = _Manager(4)
    number_above(manager, lambda: a.link.terms.load().highest)  # type: ignore[arg-type]
    assert manager.status().highest_generation == 6
    assert {r.generation for r in b.link.history.last(9)} == {3, 4, 5, 6}


class _Manager:
    name = "OpenSM"
    calls = False

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def status(self) -> SmStatus:
        return SmStatus(highest_generation=self.highest)
