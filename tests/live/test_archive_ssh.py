"""The archive by a real sshd on loopback, with a key that may run one command."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.services.archive.exchange import fetch
from sar_agent.services.archive.own import archive_path, make_archive
from sar_lab.live.process import free_port, wait_until
from tests.worlds.archive_sides import Side
from tests.worlds.live.agent_process import CLI, write_config
from tests.worlds.live.site import ROOT

pytestmark = pytest.mark.live
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[list[str]]:
    """A command that reaches this machine as `tmp_path/b`."""
    if SSHD is None or os.geteuid():
        pytest.skip("openssh-server is not installed, or this is not root")
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True)
    command = (
        f"env PYTHONPATH={ROOT} {shlex.join(map(str, CLI))} serve-state --config {tmp_path}/b.toml"
    )
    quoted = command.replace('"', '\\"')
    key = (tmp_path / "user.pub").read_text()
    (tmp_path / "authorized_keys").write_text(f'restrict,command="{quoted}" {key}')
    port = free_port()
    Path("/run/sshd").mkdir(exist_ok=True)
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nPidFile none\n"
        f"AuthorizedKeysFile {tmp_path}/authorized_keys\nStrictModes no\n"
        "PermitRootLogin forced-commands-only\nPasswordAuthentication no\nUsePAM no\n"
    )
    with (tmp_path / "sshd.log").open("wb") as log:
        daemon = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=log
        )
    try:
        listening = tmp_path / "sshd.log"
        assert wait_until(lambda: "Server listening" in listening.read_text(), 30)
        host = (tmp_path / "host.pub").read_text()
        (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {host}")
        yield [
            *("ssh", "-F", "none", "-i", str(tmp_path / "user"), "-p", str(port)),
            *("-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={tmp_path}/known_hosts"),
            "root@127.0.0.1",
        ]
    finally:
        daemon.terminate()
        daemon.wait()


def settings(side: Side) -> dict[str, dict[str, object]]:
    state, run = str(side.state), str(side.run)
    return {
        "agent": {"mode": "install", "state_dir": state, "run_dir": run},
        "opensm": {"plugin_socket": f"{run}/bridge.sock"},
    }


def test_an_archive_goes_both_ways_and_nothing_else_does(tmp_path: Path, ssh: list[str]) -> None:
    a, b = Side(tmp_path / "a"), Side(tmp_path / "b")
    write_config(tmp_path, settings(b)).rename(tmp_path / "b.toml")
    a.put(3)
    a.put(4)
    make_archive(a.config)
    with archive_path(a.state).open("rb") as file:
        done = subprocess.run(ssh, stdin=file, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert (answer["has"], answer["generation"], answer["edition"]) == (True, 4, 1), answer
    assert b.generation() == 4 and b.numbers() == [3, 4]

    b.put(5)
    words = settings(a)
    words["agent"]["peer"] = ssh
    config = Config.model_validate(words, strict=False)
    assert "was taken: generation 5" in fetch(config)
    assert a.generation() == 5

    other = subprocess.run(
        [*ssh, "cat", "/etc/passwd"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert "root:" not in other.stdout and "is no archive" in other.stdout
    wrong = [word if word != str(tmp_path / "user") else str(tmp_path / "host") for word in ssh]
    words["agent"]["peer"] = wrong
    with pytest.raises(SarError, match=r"ssh failed with exit code 255: .*Permission denied"):
        fetch(Config.model_validate(words, strict=False))
