"""Two agents without OpenSM: which state counts, what is copied, and what is refused."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.history import History, Row
from sar_agent.config.model import Config, ConfigError, parse_config
from sar_agent.errors import InputError, SarError
from sar_agent.formats.routes_file import encode, read_generation
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.standby.channel import PeerProblem, tls_context
from sar_agent.standby.numbering import NumberedAbove
from sar_agent.standby.peer_client import PeerClient
from sar_agent.standby.peer_link import PeerLink
from sar_agent.standby.peer_server import PeerServer
from sar_agent.standby.report import fetch, peer_json, peer_words
from sar_agent.standby.snapshot import SnapshotSource, StateFolders
from sar_agent.standby.terms import Claim, Precedence, TermRecord, TermStore, precedence
from sar_lab.live.process import free_port, wait_until
from tests.standby_certificate import certificate
from tests.unit.routes_vectors import small_routes

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
        # Both took term 4, apart from each other: the master's, else the higher generation.
        (claim(A, term=4), claim(B, term=4, master=True, generation=2), "ADOPT"),
        (claim(A, term=4, generation=7), claim(B, term=4, generation=8), "ADOPT"),
        (claim(A, term=4, generation=8), claim(B, term=4, generation=7), "OWN"),
        (claim(A, term=4), claim(B, term=4), "ADOPT"),
        (claim(B, term=4), claim(A, term=4), "OWN"),
        # A master's agent copies nothing.
        (claim(A, master=True), claim(B, term=9, master=True), "TWO_MASTERS"),
        (claim(A, master=True, term=2), claim(B, term=1), "OWN"),
        (claim(A, master=True, term=2), claim(B, term=2, holder=A), "OWN"),
        (claim(A, master=True, term=2), claim(B, term=2), "RAISE"),
        (claim(A, master=True, term=2), claim(B, term=3), "RAISE"),
    ],
)
def test_which_state_counts(own: Claim, peer: Claim, expected: str) -> None:
    assert precedence(own, peer) is Precedence[expected]


@pytest.mark.parametrize("seed", range(200))
def test_two_standbys_never_copy_each_other_in_turn(seed: int) -> None:
    """Whatever both claim, at most one of them copies; and a master and a standby agree."""
    bits = [(seed * 7919 >> shift) & 3 for shift in range(0, 16, 2)]
    a = claim(A, term=bits[0], holder=[A, B][bits[1] & 1], generation=1 + bits[2])
    b = claim(B, term=bits[3], holder=[A, B][bits[4] & 1], generation=1 + bits[5])
    both = precedence(a, b), precedence(b, a)
    assert both != (Precedence.ADOPT, Precedence.ADOPT)
    lead = a.model_copy(update={"master": True, "holder": A})
    if precedence(lead, b) is Precedence.RAISE:
        lead = lead.model_copy(update={"term": b.term + 1})
        assert precedence(b, lead) is Precedence.ADOPT


# ---- two folders, and a connection between them


def routes_image(generation: int) -> bytes:
    return encode(replace(small_routes(), generation=generation))


def row(at: float, generation: int) -> Row:
    return Row(at, "agent", "jobs_changed", "why", "installed", "", "sar", generation, 3, 0.1, 7)


class Side:
    """An agent's folders, and its end of the link. Its OpenSM is `role`."""

    def __init__(self, folder: Path, secret: Path, listen: int, peer: int) -> None:
        folder.mkdir()
        self.config = Config.model_validate(
            {
                "agent": {"state_dir": str(folder / "state"), "run_dir": str(folder / "run")},
                "standby": {
                    "peer": f"127.0.0.1:{peer}",
                    "listen": f"127.0.0.1:{listen}",
                    "certificate": str(secret),
                },
            },
            strict=False,
        )
        self.state, self.run = folder / "state", folder / "run"
        (self.state / "generations").mkdir(parents=True)
        self.run.mkdir()
        self.role, self.installs, self.highest = "standby", False, 0
        self.link = PeerLink(self.config, lambda: self.installs, self.status)
        self.server = PeerServer(
            ("127.0.0.1", listen),
            tls_context(secret, server=True),
            self.link.claim,
            SnapshotSource(self.link.folders),
            self.link.history,
        )
        self.server.start()

    def status(self) -> SmStatus:
        return SmStatus(role=self.role, highest_generation=self.highest)

    def lead(self) -> TermRecord:
        """As when its OpenSM becomes the master."""
        self.role = "master"
        record = self.link.take_over()
        self.installs = True
        return record

    def follow(self) -> None:
        self.role, self.installs = "standby", False

    def put(self, generation: int) -> None:
        """As an install does."""
        image = routes_image(generation)
        (self.state / f"generations/{generation}.sar").write_bytes(image)
        (self.run / "routes.sar").write_bytes(image)
        self.write_state(generation)
        self.link.history.add(row(1000.0 + generation, generation))

    def write_state(self, generation: int) -> None:
        state = {
            "generation": generation,
            "engine": "sar",
            "jobs": [["n1", "n2"]],
            "fabric_digest": "00" * 32,
            "installed_at": 1.0,
            "identity": str(generation),
        }
        path = self.state / "state.new"
        path.write_text(json.dumps(state))
        path.replace(self.state / "state.json")

    def generation(self) -> int:
        return int(json.loads((self.state / "state.json").read_text())["generation"])

    def numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.state / "generations").glob("*.sar"))


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("secret") / "standby.pem")


@pytest.fixture
def sides(tmp_path: Path, secret: Path) -> Iterator[tuple[Side, Side]]:
    ports = free_port(), free_port()
    made = Side(tmp_path / "a", secret, *ports), Side(tmp_path / "b", secret, *ports[::-1])
    yield made
    for side in made:
        side.server.stop()
        side.link.close()


def test_a_standby_copies_all_that_matters(sides: tuple[Side, Side]) -> None:
    a, b = sides
    assert a.lead().term == 1
    for generation in (3, 4):
        a.put(generation)
    (a.state / "hints.json").write_text('[{"job":"1","uid":1000,"traffic":"ring","at":5.0}]')
    (a.state / "levels.bin").write_bytes(b"levels")
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
    b.put(4)
    assert a.link.exchange() and a.generation() == 4 and a.link.terms.load().term == 2
    b.follow()
    assert a.lead().term == 3
    assert a.lead().term == 3, "an agent that starts again goes on in its term"
    assert b.link.exchange() and b.link.terms.load().term == 3
    assert {r.generation for r in a.link.history.last(9)} == {3, 4}


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


def test_after_a_split_the_masters_state_counts(
    sides: tuple[Side, Side], caplog: pytest.LogCaptureFixture
) -> None:
    a, b = sides
    a.lead()
    a.put(3)
    assert b.link.exchange()
    b.role = "master"  # its half of the fabric has no other
    b.installs = True
    b.link.terms.save(
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
    manager = NumberedAbove(_Manager(4), lambda: a.link.terms.load().highest)  # type: ignore[arg-type]
    assert manager.status().highest_generation == 6
    assert {r.generation for r in b.link.history.last(9)} == {3, 4, 5, 6}


class _Manager:
    name = "OpenSM"

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def status(self) -> SmStatus:
        return SmStatus(highest_generation=self.highest)


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
    sides: tuple[Side, Side],
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[Side], None],
    sentence: str,
) -> None:
    a, b = sides
    a.lead()
    a.put(4)
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


def test_a_lower_generation_of_the_same_term_is_refused(sides: tuple[Side, Side]) -> None:
    a, b = sides
    a.lead()
    a.put(4)
    assert b.link.exchange()
    a.write_state(3)
    assert not b.link.exchange()
    assert "says generation 3, and this agent has generation 4" in b.link.report.problem
    assert b.generation() == 4


def test_a_copy_of_this_agent_is_refused(sides: tuple[Side, Side]) -> None:
    a, b = sides
    b.link.terms.save(a.link.terms.load())
    assert not b.link.exchange()
    assert "is this one, or a copy of it: remove" in b.link.report.problem


def test_what_the_peer_says_is_bounded(sides: tuple[Side, Side]) -> None:
    a, _ = sides
    a.lead()
    a.put(4)
    names = {"name": "../../etc/passwd"}, {"name": "state.json", "size": 2**26 + 1}
    for wrong in (*names, {"name": "generations/01.sar"}, {"digest": "x"}):
        files = [{"name": "state.json", "size": 1, "digest": "0" * 64} | wrong]
        answer = {"claim": a.link.claim().model_dump(), "digest": "", "files": files}
        client = PeerClient(("127.0.0.1", 1), ssl.create_default_context())
        client._channel = _Says(answer)  # type: ignore[assignment]
        with pytest.raises(PeerProblem, match=r"in no snapshot|another format"):
            client.look()


class _Says:
    name = "peer"

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer

    def send(self, message: dict[str, Any]) -> None:
        pass

    def receive(self) -> dict[str, Any]:
        return self.answer

    def close(self) -> None:
        pass


# ---- who gets an answer


def test_nobody_without_the_certificate_gets_anything(
    sides: tuple[Side, Side], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = sides
    a.lead()
    a.put(4)
    address = a.config.standby.listen_host_port
    other = certificate(tmp_path / "other.pem")
    stranger = PeerClient(address, tls_context(other, server=False))
    with pytest.raises(PeerProblem, match="it is no agent with our certificate"):
        stranger.look()
    # One that accepts every server, with a wrong certificate or none.
    for own in (other, None):
        anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        if own:
            anybody.load_cert_chain(own)
        with pytest.raises(PeerProblem):
            PeerClient(address, anybody).look()
    with socket.create_connection(address) as plain:
        plain.sendall(b'{"ask":"look"}\n' * 3)
        plain.settimeout(20)
        answer = b""
        with suppress(ConnectionResetError):
            while piece := plain.recv(4096):
                answer += piece
        assert len(answer) < 100 and b"claim" not in answer
    told = [line for line in caplog.messages if "have shown no certificate of ours" in line]
    assert len(told) == 1, "strangers do not fill the log"
    assert b.link.exchange(), "the peer is served all the same"


def test_silent_strangers_take_few_places_for_a_short_time(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = sides
    a.lead()
    a.put(4)
    assert b.link.exchange()
    monkeypatch.setattr("sar_agent.standby.peer_server.HANDSHAKE", 0.5)
    threads = threading.active_count()
    silent = [socket.create_connection(a.config.standby.listen_host_port) for _ in range(40)]
    assert b.link.exchange(), "a connection that is open stays"
    assert threading.active_count() <= threads + 2 * 8
    for one in silent:
        one.settimeout(30)
        assert one.recv(1) == b"", "the server ends it"
        one.close()
    b.link.close()
    assert wait_until(b.link.exchange, 20)


def test_a_certificate_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = certificate(tmp_path / "standby.pem")
    path.chmod(0o644)
    with pytest.raises(InputError, match="may read or change it; chown root"):
        tls_context(path, server=True)
    path.chmod(0o600)
    path.write_text("no key")
    with pytest.raises(InputError, match="is not a private key with its certificate"):
        tls_context(path, server=True)
    with pytest.raises(InputError, match="cannot be read"):
        tls_context(tmp_path / "none.pem", server=False)
    locked = tmp_path / "locked.pem"
    words = "openssl req -x509 -newkey rsa:2048 -days 1 -subj /CN=x -passout pass:secret"
    subprocess.run(
        [*words.split(), "-keyout", str(locked), "-out", str(locked)], check=True,
        capture_output=True,
    )  # fmt: skip
    locked.chmod(0o600)
    with pytest.raises(InputError, match="is not a private key"):
        tls_context(locked, server=True)


AUTHORITY = """[ca]
default_ca = it
[it]
database = index
new_certs_dir = .
serial = serial
default_md = sha256
policy = names
[names]
commonName = supplied
"""


def test_a_certificate_that_has_expired_still_serves(tmp_path: Path) -> None:
    path = tmp_path / "old.pem"
    (tmp_path / "ca.cnf").write_text(AUTHORITY)
    (tmp_path / "index").write_text("")
    (tmp_path / "serial").write_text("01")
    curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x"
    for words in (
        f"req {curve} -keyout key -out request",
        "ca -config ca.cnf -batch -notext -selfsign -keyfile key -in request -out cert "
        "-startdate 20200101000000Z -enddate 20210101000000Z",
    ):
        subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    path.write_text((tmp_path / "key").read_text() + (tmp_path / "cert").read_text())
    path.chmod(0o600)
    ports = free_port(), free_port()
    a, b = Side(tmp_path / "a", path, *ports), Side(tmp_path / "b", path, *ports[::-1])
    try:
        a.lead()
        a.put(4)
        assert b.link.exchange(), b.link.report.problem
    finally:
        a.server.stop()
        b.server.stop()


# ---- snapshots, status, configuration


def test_a_snapshot_is_of_one_moment(tmp_path: Path, secret: Path) -> None:
    side = Side(tmp_path / "a", secret, free_port(), free_port())
    side.put(1)
    source, stop, seen = SnapshotSource(side.link.folders), threading.Event(), set()

    def install() -> None:
        generation = 2
        while not stop.is_set():
            side.write_state(generation)
            generation += 1
            time.sleep(0.001)

    thread = threading.Thread(target=install)
    thread.start()
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                snapshot = source.take()
            except SarError as error:
                assert "change too often" in str(error)
                continue
            first = snapshot.contents("state.json")
            time.sleep(0.002)
            assert snapshot.contents("state.json") == first, "it stays what it was"
            assert first is not None
            seen.add(json.loads(first)["generation"])
            snapshot.close()
    finally:
        stop.set()
        thread.join()
        side.server.stop()
    assert len(seen) > 3
    assert len(list(Path("/proc/self/fd").iterdir())) < 200


def test_fetch_and_status(sides: tuple[Side, Side]) -> None:
    a, b = sides
    assert peer_json(Config()) is None
    a.lead()
    a.put(4)
    assert fetch(b.config) == "the peer's state was copied: generation 4, term 1"
    assert fetch(b.config).startswith("the peer's state is here already, or is newer here")
    shown = peer_json(b.config)
    assert shown is not None and shown["same_state"] and shown["installs"]
    name = socket.gethostname()
    assert f"{name} at {b.config.standby.peer} installs, generation 4, term 1" in peer_words(shown)
    assert "the same state here, term 1; copied " in peer_words(shown)
    a.server.stop()
    shown = peer_json(b.config)
    assert shown is not None and "does not answer" in peer_words(shown)
    with pytest.raises(PeerProblem, match="does not answer"):
        fetch(b.config)


def test_the_section_is_whole_or_empty() -> None:
    with pytest.raises(ConfigError, match="listen and certificate is missing; set all three"):
        parse_config('[standby]\npeer = "sm2:9779"\n')
    with pytest.raises(ConfigError, match="certificate: give an absolute path"):
        parse_config('[standby]\npeer = "sm2:1"\nlisten = "0.0.0.0:1"\ncertificate = "x"\n')


def test_a_broken_record_names_its_remedy(tmp_path: Path) -> None:
    store = TermStore(tmp_path)
    node = store.load().node
    assert store.load().node == node, "made once"
    store.path.write_text("{")
    with pytest.raises(InputError, match=r"cannot be used .* remove it"):
        store.load()


def test_rows_after_a_time(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert history.after(0, 10) == []
    history.add(row(3, 3), row(1, 1), row(2, 2))
    assert [r.generation for r in history.after(1, 10)] == [2, 3]
    assert [r.generation for r in history.after(0, 2)] == [1, 2]
    assert StateFolders.of(Config().agent).state == Path("/var/lib/sar-agent")
