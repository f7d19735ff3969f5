"""libsar_migrate in separate processes: notices of a real OpenSM over ibsim, messages with real
credentials. The coordinator is that of the tests, the queue pairs are a model."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sar_agent.events.answers import encode_answer
from sar_agent.events.munge import Munge
from sar_lab.live.process import wait_for
from tests.worlds.live.site import site
from tests.worlds.live.subscriber import Subscriber


class Coordinator:
    """Answers `subscribe` with `phase`, `update` and `lease`, and every other message with ok. With
    `away` it closes connections without an answer. `heard` has all messages, also unanswered
    ones."""

    def __init__(self, path: Path, munge: Path, lease: float = 30.0) -> None:
        self.path, self.lease = path, lease
        self.phase, self.update, self.away = "idle", 0, False
        self.heard: list[dict[str, Any]] = []
        self._decode = Munge(str(munge)).decode
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(5)
                line = client.makefile("rb").readline()
                uid, payload = self._decode(line.strip())
                message = json.loads(payload)
                self.heard.append(message | {"uid": uid})
                if not self.away:
                    client.sendall(encode_answer(self._answer(message)))

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["event"] != "subscribe":
            return {"ok": True}
        state = {"lease": self.lease, "phase": self.phase, "update": self.update}
        return {"ok": True, **state, "generation": 3}

    def events(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        wanted = fields | {"event": event}
        return [one for one in self.heard if wanted.items() <= one.items()]

    def wait(self, event: str, seconds: float = 20, count: int = 1, **fields: Any) -> None:
        wait_for(lambda: len(self.events(event, **fields)) >= count, seconds, f"{event} {fields}")

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextlib.contextmanager
def coordinator(path: Path, munge: Path, lease: float = 30.0) -> Iterator[Coordinator]:
    made = Coordinator(path, munge, lease)
    try:
        yield made
    finally:
        made.close()


def now_ns() -> int:
    """A number for an update, as the agent takes it."""
    return time.time_ns()


pytestmark = pytest.mark.live
ASAN = "sar-migrate-demo-asan"


@pytest.fixture
def agent(tmp_path: Path, munge: Path) -> Iterator[Coordinator]:
    with coordinator(tmp_path / "door", munge) as made:
        yield made


def test_notices_of_opensm_move_a_subscriber_away_and_back(
    tmp_path: Path, munge: Path, agent: Coordinator
) -> None:
    """Unpath, acknowledged on offset 1; repath, acknowledged on offset 0. The lease is long, so "
    "only a notice explains the fast reaction."""
    agent.lease = 3000.0
    with site() as here:
        env = here.fabric.env("n010")
        words = "notices=1", "simulated=1"
        with Subscriber(tmp_path, agent.path, munge, *words, env=env) as one:
            one.wait("moved", offset=0)
            update = now_ns()

            def subscribed() -> bool:
                return here.bridge.notice("unpath", update, 4).subscribed == 1

            wait_for(subscribed, 20, "the SA holding the subscription")
            agent.wait("ack", phase="unpath", update=update, offset=1)
            here.bridge.notice("unpath", update, 4)  # again: nothing comes of it
            assert here.bridge.notice("repath", update, 4).subscribed == 1
            agent.wait("ack", phase="repath", update=update, offset=0)
            here.bridge.notice("unpath", update, 4)  # late
            assert one.end() == (0, "")
        agent.wait("unsubscribe")
    said = [(e["event"], e.get("offset", e.get("phase"))) for e in one.lines()]
    away = [("notice", "unpath"), ("move", 1), ("moved", 1), ("ack", 1)]
    back = [("notice", "repath"), ("move", 0), ("moved", 0), ("ack", 0)]
    told = [pair for pair in said if pair[0] in ("notice", "move", "moved", "ack")]
    assert told[-8:] == away + back
    assert [one["generation"] for one in one.events("notice")] == [4, 4]
    assert len(agent.events("ack")) == 2


def test_the_door_tells_who_heard_no_notice(
    tmp_path: Path, munge: Path, agent: Coordinator
) -> None:
    agent.lease = 1.5
    agent.phase, agent.update = "unpath", 5
    with Subscriber(tmp_path, agent.path, munge, program=ASAN) as one:
        agent.wait("ack", phase="unpath", update=5, offset=1)
        assert not one.events("move"), "a newcomer in an update starts on the shelter"
        agent.phase = "install"
        agent.phase = "repath"
        agent.wait("ack", phase="repath", update=5, offset=0)
        agent.phase = "idle"
        agent.phase, agent.update = "unpath", 6
        agent.wait("ack", phase="unpath", update=6, offset=1)
        assert one.end() == (0, "")
    assert {message["uid"] for message in agent.heard} == {0}
    assert len({message["subscriber"] for message in agent.heard}) == 1


def test_without_a_renewed_lease_offset_0_is_left_in_time(
    tmp_path: Path, munge: Path, agent: Coordinator
) -> None:
    agent.lease = 3.0
    with Subscriber(tmp_path, agent.path, munge, program=ASAN) as one:
        one.wait("moved", offset=0)
        agent.away = True
        one.wait("moved", offset=1)
        fenced = one.events("fence")[0]["at"]
        renewed = [m["at"] for m in agent.events("subscribe") if m["at"] < fenced]
        answered = [line["at"] for line in one.events("answer")]
        assert fenced - max(a for a in answered if a < fenced) < agent.lease
        assert renewed and one.events("moved", offset=1)[0]["at"] > fenced
        agent.away = False
        one.wait("moved", count=2, offset=0)
        code, complaints = one.end()
        assert (code, complaints) == (0, "")
