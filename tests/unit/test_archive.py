"""The archive of two agents: what is in it, which of two counts, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.peer import PeerStore, peer_generation
from sar_agent.agent.quiet import PASSES
from sar_agent.errors import SarError
from sar_agent.formats.routes_file import read_generation
from sar_agent.services.archive.exchange import FETCH, fetch, send
from sar_agent.services.archive.files import StateFolders
from sar_agent.services.archive.format import (
    LARGEST,
    MAGIC,
    Header,
    digest_of,
    pack,
    read_header,
    unpack,
)
from sar_agent.services.archive.own import archive_path, kept_header, make_archive
from sar_agent.services.archive.sender import Sender
from sar_agent.util.lock_file import Lock
from tests.worlds.archive_sides import Side, row, two_sides


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Side, Side]:
    return two_sides(tmp_path, monkeypatch)


@pytest.fixture
def led(sides: tuple[Side, Side]) -> tuple[Side, Side]:
    """The first is the master, with generation 4 in force, and the other one has its archive."""
    a, b = sides
    a.put(3)
    a.put(4)
    (a.state / "hints.json").write_text("[]")
    assert "has the state of generation 4, edition 1" in send(a.config)
    return a, b


def changed(image: bytes, **header: Any) -> bytes:
    """The archive with other words in its first line."""
    line, _, body = image.partition(b"\n")
    known = json.loads(line.removeprefix(MAGIC))
    return MAGIC + json.dumps(known | header).encode() + b"\n" + body


def archive_of(files: dict[str, bytes], generation: int = 9) -> bytes:
    body, unpacked = pack(files)
    return packed(body, unpacked, digest_of(files), generation)


def packed(body: bytes, unpacked: int, contents: str, generation: int = 9) -> bytes:
    from sar_agent import __version__

    header = Header(
        release=__version__, generation=generation, edition=1, contents=contents, decided=0,
        size=len(body), unpacked=unpacked, sha256=hashlib.sha256(body).hexdigest(),
    )  # fmt: skip
    return header.line() + body


# ---- what is copied


def test_the_other_machine_has_the_whole_state(led: tuple[Side, Side]) -> None:
    a, b = led
    assert (b.generation(), b.numbers()) == (4, [3, 4])
    assert read_generation(b.run / "routes.sar") == 4
    assert (b.state / "hints.json").exists()
    assert b.history.last(9) == a.history.last(9)
    assert kept_header(a.state) == kept_header(b.state)
    record = PeerStore(a.state).load()
    assert record and (record.generation, record.edition, record.problem) == (4, 1, "")
    # What went goes there, too, and what belongs to connections never comes along.
    (a.state / "generations/3.sar").unlink()
    (a.state / "hints.json").unlink()
    (a.state / "subscribers.jsonl").write_text("")
    (b.state / "subscribers.jsonl").write_text("of an earlier agent")
    assert "edition 2" in send(a.config)
    assert b.numbers() == [4] and not (b.state / "hints.json").exists()
    assert not (b.state / "subscribers.jsonl").exists()


def test_only_the_master_s_agent_sends(led: tuple[Side, Side]) -> None:
    a, b = led
    a.put(5)
    a.role = "standby"
    assert "only the master's agent sends" in send(a.config)
    assert b.generation() == 4


def test_decisions_are_added_and_none_is_lost(led: tuple[Side, Side]) -> None:
    a, b = led
    b.history.add(row(1500.0, 2))
    a.history.add(row(2000.0, 4))
    send(a.config)
    assert [one.at for one in b.history.last(9)] == [2000.0, 1500.0, 1004.0, 1003.0]
    assert [one.at for one in a.history.last(9)] == [1500.0, 2000.0, 1004.0, 1003.0]
    assert kept_header(a.state).edition == 1, "they make no other state"  # type: ignore[union-attr]


def test_files_are_read_as_of_one_moment(sides: tuple[Side, Side]) -> None:
    a, _ = sides
    a.put(1)
    stop, written = threading.Event(), {(a.state / "state.json").read_bytes()}

    def install() -> None:
        generation = 1
        while not stop.is_set():
            generation += 1
            a.write_state(generation)
            written.add((a.state / "state.json").read_bytes())
            stop.wait(0.001)

    thread = threading.Thread(target=install)
    thread.start()
    seen = set()
    try:
        for _ in range(300):
            try:
                seen.add(StateFolders.of(a.config.agent).read()["state.json"])
            except SarError as error:
                assert "change too often" in str(error)
    finally:
        stop.set()
        thread.join()
    assert len(seen) > 3 and seen <= written


# ---- which of two counts


def test_an_older_archive_is_never_taken(led: tuple[Side, Side]) -> None:
    a, b = led
    old = archive_path(a.state).read_bytes()
    a.put(5)
    send(a.config)
    before = b.files()
    answer = json.loads(b.answer(old))
    assert not answer["has"] and "is older (generation 4, edition 1)" in answer["sentence"]
    # Nor an older one of the same generation.
    middle = archive_path(a.state).read_bytes()
    a.write_state(5, "sar-plus")
    assert "edition 2" in send(a.config)
    before = b.files()
    assert "is older (generation 5, edition 1)" in json.loads(b.answer(middle))["sentence"]
    assert b.files() == before


def test_a_master_takes_nothing(led: tuple[Side, Side]) -> None:
    a, b = led
    a.put(5)
    b.role = "master"
    before = b.files()
    with pytest.raises(SarError, match="the OpenSM here is the master"):
        send(a.config)
    assert b.files() == before
    assert "the OpenSM here is the master" in PeerStore(a.state).load().problem  # type: ignore[union-attr]
    with pytest.raises(SarError, match="it has the newest state"):
        fetch(b.config)


@pytest.mark.parametrize("lock", [PASSES, "pass.lock"])
def test_nothing_is_taken_while_passes_are_made(
    led: tuple[Side, Side], lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that has lost its OpenSM, but whose pass has not ended; a person's rollback."""
    a, b = led
    monkeypatch.setattr("sar_agent.services.archive.take.LOCK_SECONDS", 0.1)
    a.put(5)
    with Lock(b.state, lock), pytest.raises(SarError, match="held by process"):
        send(a.config)
    assert b.generation() == 4
    send(a.config)
    assert b.generation() == 5


def test_after_a_split_the_master_goes_above_the_other(led: tuple[Side, Side]) -> None:
    a, b = led
    b.role = "master"  # its half of the fabric has no other
    for generation in (5, 6):
        b.put(generation, 1000.5)
    a.put(5)
    b.role = "standby"
    with pytest.raises(SarError, match="the next generation here will be above 6"):
        send(a.config)
    assert (b.generation(), peer_generation(a.state)) == (6, 6)
    a.put(7)
    send(a.config)
    assert (b.generation(), b.numbers()) == (7, [3, 4, 5, 7])
    for side in (a, b):
        assert {one.generation for one in side.history.last(9)} == {3, 4, 5, 6, 7}


def test_of_two_states_of_one_generation_the_master_s_counts(led: tuple[Side, Side]) -> None:
    a, b = led
    b.role = "master"
    b.write_state(4, "ftree")
    (b.state / "hints.json").unlink()
    make_archive(b.config)
    a.write_state(4, "sar-plus")
    b.role = "standby"
    assert "edition 3" in send(a.config)
    assert json.loads((b.state / "state.json").read_text())["engine"] == "sar-plus"


# ---- before OpenSM starts


def test_before_opensm_starts_the_peer_s_archive_is_taken(led: tuple[Side, Side]) -> None:
    a, b = led
    a.role, b.role = "not running", "master"
    b.put(5)
    (a.run / "routes.sar").unlink()  # a reboot empties it
    assert "was taken: generation 5" in fetch(a.config)
    assert a.generation() == 5 and read_generation(a.run / "routes.sar") == 5
    assert "is here already" in fetch(a.config)
    # The peer has what this machine had before it died: its own is newer.
    a.put(6)
    with pytest.raises(SarError, match="is older"):
        fetch(a.config)
    assert a.generation() == 6


def test_a_reboot_with_the_same_state_gives_opensm_its_routes(led: tuple[Side, Side]) -> None:
    a, b = led
    a.role, b.role = "not running", "master"
    (a.run / "routes.sar").unlink()
    fetch(a.config)
    assert read_generation(a.run / "routes.sar") == 4


def test_a_peer_without_a_state_gives_none(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.role = "not running"
    with pytest.raises(SarError, match=r"gives no archive: .*nothing was installed yet"):
        fetch(a.config)
    b.deaf = True
    with pytest.raises(SarError, match="No route to host"):
        fetch(a.config)


# ---- what is refused


STATE = json.dumps(
    {
        "generation": 9, "engine": "sar", "jobs": [], "fabric_digest": "", "installed_at": 1.0,
        "identity": "9",
    }
).encode()  # fmt: skip


def linked() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo("state.json")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    return packed(gzip.compress(out.getvalue()), out.tell(), "0" * 64)


REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "another release": (lambda image: changed(image, release="0.1.0"), "nothing is copied"),
    "no archive": (lambda image: b"GET / HTTP/1.1\n", "is no archive"),
    "no line": (lambda image: b"x" * 9000, "is no archive"),
    "another format": (lambda image: MAGIC + b"{}\n", "another format"),
    "damaged": (lambda image: image[:-1] + bytes([image[-1] ^ 1]), "checksum"),
    "cut off": (lambda image: image[:-9], "checksum"),
    "longer than it says": (lambda image: image + b"x", "checksum"),
    "larger than any": (lambda image: changed(image, size=LARGEST + 1), "another format"),
    "unpacked larger": (lambda image: changed(image, unpacked=9), "size that it says"),
    "a generation without room": (
        lambda image: changed(image, generation=2**63 - 1),
        "another format",
    ),
    "outside": (lambda image: archive_of({"../../etc/passwd": b"x"}), "which is in no archive"),
    "a link": (lambda image: linked(), "which is in no archive"),
    "other contents": (lambda image: changed(image, contents="0" * 64), "other files"),
    "no state": (lambda image: archive_of({"hints.json": b"[]"}), "has no state.json"),
    "a broken state": (lambda image: archive_of({"state.json": b"{}"}), "another format"),
    "another generation": (lambda image: archive_of({"state.json": STATE}, 8), "has generation 9"),
    "broken routes": (
        lambda image: archive_of({"state.json": STATE, "routes.sar": b"x"}),
        "routes.sar",
    ),
    "broken levels": (
        lambda image: archive_of({"state.json": STATE, "levels.bin": b"x"}),
        "it is too large, or cut off",
    ),
    "broken hints": (
        lambda image: archive_of({"state.json": STATE, "hints.json": b"{}"}),
        "hints.json has another format",
    ),
}


@pytest.mark.parametrize(("spoil", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_changes_nothing(
    led: tuple[Side, Side], spoil: Callable[[bytes], bytes], why: str
) -> None:
    a, b = led
    a.put(5)
    make_archive(a.config)
    before = b.files()
    answer = json.loads(b.answer(spoil(archive_path(a.state).read_bytes())))
    assert not answer["has"] and why in answer["sentence"]
    assert answer["generation"] == 4
    assert b.files() == before


def test_a_gzip_bomb_is_not_unpacked(led: tuple[Side, Side]) -> None:
    """It stops after the size that the first line says."""
    _, b = led
    bomb = packed(gzip.compress(bytes(2**26)), 1000, "0" * 64)
    assert "does not have the size" in json.loads(b.answer(bomb))["sentence"]


def test_an_archive_is_a_tar_file_behind_a_line(led: tuple[Side, Side]) -> None:
    _, b = led
    image = b.answer(FETCH)
    line, _, body = image.partition(b"\n")
    files = unpack(read_header(line + b"\n", "it"), body, "it")
    assert {"state.json", "routes.sar", "generations/4.sar", "decisions.json"} <= files.keys()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(body))) as tar:
        assert sorted(tar.getnames()) == sorted(files)


# ---- again and again


def test_the_sender_sends_what_changed_and_tries_again(
    led: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = led
    now = [0.0]
    monkeypatch.setattr("sar_agent.services.archive.sender.time.monotonic", lambda: now[0])
    sender = Sender(a.config)
    assert sender.turn() and not sender.turn()
    a.put(5)
    assert sender.turn() and b.generation() == 5
    b.deaf = True
    a.put(6)
    assert sender.turn() and not sender.turn(), "a pause"
    now[0] += 6
    assert sender.turn()
    assert caplog.text.count("No route to host") == 1, "it is said once"
    b.deaf = False
    now[0] += 6
    assert sender.turn() and b.generation() == 6 and not sender.turn()
    now[0] += 61
    assert sender.turn(), "whether it still has it"
    a.role = "standby"
    a.put(7)
    assert not sender.turn() and b.generation() == 6
    a.role = "master"
    assert sender.turn() and b.generation() == 7
