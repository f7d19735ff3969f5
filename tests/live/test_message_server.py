"""The message server of a running agent, with real munge credentials: which senders it accepts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_agent.services.keys import client as key
from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.process import wait_until
from tests.worlds.live.built import built
from tests.worlds.live.listening import Agent, start
from tests.worlds.live.munged import NOBODY, credential, message, tell

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.getuid() != 0, reason="speaks as several users"),
]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, munge: Path) -> Iterator[Agent]:
    made = start(tmp_path_factory.mktemp("agent"), munge)
    yield made
    made.process.terminate()
    assert made.process.wait(30) == 0, made.log()
    assert not made.unix.exists()
    assert "Traceback" not in made.log()


def test_root_is_believed_on_both_and_the_agent_looks_at_once(agent: Agent) -> None:
    for n, address in enumerate([agent.tcp, agent.unix]):
        before, looks = time.monotonic(), agent.looks()
        assert tell(address, credential(agent.munge, message(job=str(70 + n)))) == {"ok": True}
        assert wait_until(lambda looks=looks: agent.looks() > looks, 20, 0.01)
        assert time.monotonic() - before < 500, "the next look by itself is in 1,000 s"


def test_a_start_or_end_that_is_not_root_s(agent: Agent) -> None:
    refused, looks = agent.refused("not_allowed"), agent.looks()
    for event in ("start", "end"):
        answer = tell(agent.tcp, credential(agent.munge, message(event, user=0), NOBODY))
        assert answer == {"ok": False, "error": f"uid {NOBODY} may not report the {event} of jobs"}
    assert agent.refused("not_allowed") == refused + 2
    assert agent.looks() == looks


def test_a_hint_on_another_s_job_and_on_one_s_own(agent: Agent) -> None:
    refused, looks = agent.refused("not_owner"), agent.looks()
    forged = message("hint", "7", user=NOBODY - 1, traffic="weight=0.001")
    answer = tell(agent.tcp, credential(agent.munge, forged, NOBODY - 1))
    assert answer == {"ok": False, "error": f"job 7 does not belong to uid {NOBODY - 1}"}
    assert agent.refused("not_owner") == refused + 1
    assert agent.looks() == looks

    own = message("hint", "7", user=NOBODY, traffic="weight=0.25")
    assert tell(agent.tcp, credential(agent.munge, own, NOBODY))["ok"]
    assert wait_until(lambda: agent.looks() > looks, 20)
    hints = agent.folder / "state" / "hints.json"
    assert wait_until(hints.exists, 10)
    assert [(h["job"], h["traffic"]) for h in json.loads(hints.read_text())] == [
        ("7", "weight=0.25")
    ]


def test_a_credential_twice_and_one_of_another_munge(agent: Agent) -> None:
    refused = agent.refused("replayed")
    line = credential(agent.munge, message())
    assert tell(agent.tcp, line)["ok"]
    again = tell(agent.tcp, line)
    assert again == {"ok": False, "error": "this credential was used before"}
    same = message(job="9")
    assert tell(agent.tcp, credential(agent.munge, same))["ok"]
    assert not tell(agent.unix, credential(agent.munge, same))["ok"], "signed again"
    assert agent.refused("replayed") == refused + 2

    refused = agent.refused("credential")
    with MungeDaemon() as other:
        foreign = credential(other.socket, message())
    assert "rejects the credential" in tell(agent.tcp, foreign)["error"]
    assert "rejects the credential" in tell(agent.tcp, line[:60] + b"AAAA" + line[64:])["error"]
    assert agent.refused("credential") == refused + 2


def test_a_credential_is_for_the_agent_s_uid_only(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who listens in the agent's place gets nothing that he can read, or show to others."""
    monkeypatch.setenv("SAR_MUNGE_SOCKET", str(agent.munge))

    def unmunged(line: bytes, uid: int) -> int:
        command = ["unmunge", f"--socket={agent.munge}"]
        return subprocess.run(command, input=line, capture_output=True, user=uid).returncode

    ours = [key.credential(json.dumps(message()).encode(), 10, os.getuid()) for _ in range(2)]
    assert unmunged(ours[0], NOBODY) != 0
    assert tell(agent.tcp, ours[1])["ok"]
    foreign = key.credential(json.dumps(message()).encode(), 10, NOBODY)
    assert "rejects the credential" in tell(agent.tcp, foreign)["error"]
    assert unmunged(foreign, NOBODY) == 0
    assert key.keys(job="7", agent=str(agent.unix)) == []

    with socket.socket(socket.AF_UNIX) as place:
        place.bind(str(tmp_path / "s"))
        place.listen()
        notify = [str(built("slurm_spank", "sar-notify")), "start", f"agent={tmp_path}/s"]
        told = subprocess.Popen(
            [*notify, f"munge_socket={agent.munge}"],
            env=os.environ | {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "0"},
        )
        with place.accept()[0] as stream:
            line = stream.makefile("rb").readline().rstrip(b"\n")
        assert told.wait(20) == 0
    assert line.startswith(b"MUNGE:")
    assert unmunged(line, NOBODY) != 0 and unmunged(line, os.getuid()) == 0


def test_status_shows_the_counters(agent: Agent) -> None:
    tell(agent.tcp, credential(agent.munge, message()))
    tell(agent.tcp, b"noise")
    said = agent.cli("status")
    line = next(line for line in said.splitlines() if line.startswith("events"))
    assert "start" in line and "refused" in line and "garbage" in line
    door = json.loads(agent.cli("status", "--json"))["events"]
    assert door["events"]["start"] >= 1 and door["refused"]["garbage"] >= 1
