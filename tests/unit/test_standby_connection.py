"""The connection between two agents: who is served, and what a snapshot, `status` and the settings
are."""

from __future__ import annotations

import hashlib
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sar_agent.config.model import Config, ConfigError, parse_config
from sar_agent.errors import InputError, SarError
from sar_agent.standby.channel import PeerProblem, tls_context
from sar_agent.standby.peer_client import PeerClient
from sar_agent.standby.report import fetch, peer_json, peer_words
from sar_agent.standby.snapshot import SnapshotSource
from sar_agent.standby.terms import TermStore
from sar_lab.live.process import free_port, wait_until
from tests.worlds.standby_certificate import certificate
from tests.worlds.standby_sides import Side

# ---- who gets an answer


def test_nobody_without_the_certificate_gets_anything(
    led: tuple[Side, Side], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = led
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


# ---- snapshots, status, configuration


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_snapshot_is_of_one_moment(tmp_path: Path, secret: Path) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    side = Side(tmp_path / "a", secret, free_port(), free_port())
    side.put(1)
    source, stop = SnapshotSource(side.link.folders), threading.Event()
    seen: set[str] = set()
    written = {_digest(side.state / "state.json")}

    def install() -> None:
        generation = 2
        while not stop.is_set():
            side.write_state(generation)
            written.add(_digest(side.state / "state.json"))
            generation += 1
            time.sleep(0.001)

    thread = threading.Thread(target=install)
    thread.start()
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                (file,) = (each for each in source.snapshot() if each.name == "state.json")
            except SarError as error:
                assert "change too often" in str(error)
                continue
            seen.add(file.digest)
    finally:
        stop.set()
        thread.join()
        side.server.stop()
    assert len(seen) > 3 and seen <= written, "no digest is of a file that was half replaced"
    assert len(list(Path("/proc/self/fd").iterdir())) < open_before + 100


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


def test_silent_strangers_take_few_places_for_a_short_time(
    led: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = led
    assert b.link.exchange()
    monkeypatch.setattr("sar_agent.standby.peer_server.HANDSHAKE_SECONDS", 0.5)
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


def test_strangers_on_two_addresses_keep_no_peer_away(
    led: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """peer_places.py: 24 strangers on two addresses had all eight places."""
    a, b = led
    monkeypatch.setattr("sar_agent.standby.peer_server.HANDSHAKE_SECONDS", 600.0)
    port, taken = a.config.standby.listen_host_port[1], a.server._places.of
    strangers = [
        socket.create_connection(("127.0.0.1", port), 60, (f"127.0.0.{2 + n % 2}", 0))
        for n in range(24)
    ]
    assert wait_until(lambda: taken.total() == 4, 60), "half of the places"
    assert dict(taken) == {"127.0.0.2": 2, "127.0.0.3": 2}
    assert b.link.exchange(), b.link.report.problem
    for one in strangers:
        one.close()


def test_who_has_shown_the_certificate_is_the_peer_wherever_it_is(
    led: tuple[Side, Side], secret: Path
) -> None:
    """A peer with several addresses, or one whose name was not known when the agent began."""
    a, _ = led
    port = a.config.standby.listen_host_port[1]
    context = tls_context(secret, server=False)
    with socket.create_connection(("127.0.0.1", port), 60, ("127.0.0.9", 0)) as raw:
        context.wrap_socket(raw)
        assert wait_until(lambda: "127.0.0.9" in a.server._known, 60)
    held = [socket.create_connection(("127.0.0.1", port), 60, ("127.0.0.9", 0)) for _ in range(4)]
    assert wait_until(lambda: a.server._places.of["127.0.0.9"] >= 4, 60)
    for one in held:
        one.close()
