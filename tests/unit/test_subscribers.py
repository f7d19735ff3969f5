"""Messages of subscribers of five-phase updates, and which senders are accepted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from sar_agent.errors import InputError
from sar_agent.events.authority import KnownJob
from sar_agent.events.dispatch import Dispatcher
from sar_agent.services.five_phase import storage as saved
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.messages import BeginUpdate, Phase, Tick
from sar_agent.services.five_phase.protocol import LeaseRules
from sar_agent.services.five_phase.subscribers import Subscribers
from tests.worlds.event_clients import ALICE, BOB, ROOT, Ear, decode

NAME = "00000000000000aa"


class Desk(Ear):
    """A message server with subscribers; job 7 is Alice's."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.coordinator = Coordinator(folder, LeaseRules(lease=30.0))
        self.counts: list[int] = []
        self.family = Subscribers(self.coordinator, self.authority, self.counts.append)
        self.dispatcher = Dispatcher(
            decode, self.jobs, self.counters, [self.family], status=self.family.status
        )
        self.authority.known = {"7": KnownJob(ALICE, None)}

    def tell(self, uid: int, event: str, **keys: Any) -> dict[str, Any]:
        said = {"v": 1, "event": event, "job": "7", "subscriber": NAME, "at": time.time()}
        return self.say(uid, said | {"id": os.urandom(8).hex()} | keys)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_subscriber_is_told_the_phase_and_counted(desk: Desk) -> None:
    answer = desk.tell(ALICE, "subscribe", offset=0)
    assert answer == {"ok": True, "lease": 30.0, "phase": "idle", "update": 0, "generation": 0}
    assert desk.counts == [1]
    desk.coordinator.drive(BeginUpdate(4, 2**63))
    answer = desk.tell(ALICE, "subscribe", offset=0, update=0)
    assert (answer["phase"], answer["update"], answer["generation"]) == ("unpath", 2**63, 4)
    assert desk.tell(ALICE, "ack", phase="unpath", update=2**63, offset=1) == {"ok": True}
    desk.coordinator.drive(Tick())
    assert desk.coordinator.state.phase is Phase.INSTALL
    assert desk.tell(ROOT, "unsubscribe") == {"ok": True}
    assert desk.counts[-1] == 0
    value = desk.metrics.registry.get_sample_value
    for event, count in (("subscribe", 2), ("ack", 1), ("unsubscribe", 1)):
        assert value("sar_agent_events_total", {"event": event, "transport": "tcp"}) == count
    assert desk.family.status()["update"]["phase"] == "install"


def test_nobody_speaks_for_others(desk: Desk) -> None:
    assert desk.tell(BOB, "subscribe", offset=0)["error"] == f"job 7 does not belong to uid {BOB}"
    desk.tell(ALICE, "subscribe", offset=0)
    for event, keys in (
        ("ack", {"phase": "unpath", "update": 1, "offset": 1}),
        ("unsubscribe", {}),
        ("subscribe", {"offset": 0}),
    ):
        # By a job that nobody knows yet, which could be Bob's.
        answer = desk.tell(BOB, event, job="99", **keys)
        assert answer == {"ok": False, "error": f"subscriber {NAME} does not belong to uid {BOB}"}
    assert set(desk.coordinator.state.members) == {NAME}


@pytest.mark.parametrize(
    "keys",
    [
        {"event": "subscribe"},
        {"event": "subscribe", "offset": 2},
        {"event": "subscribe", "offset": 0, "subscriber": "short"},
        {"event": "subscribe", "offset": 0, "update": 2**64},
        {"event": "ack", "phase": "idle", "update": 1, "offset": 0},
        {"event": "ack", "phase": "unpath", "update": 1, "offset": 0},
    ],
)
def test_malformed_messages_are_refused(desk: Desk, keys: dict[str, Any]) -> None:
    desk.tell(ALICE, "subscribe", offset=0)
    before = desk.coordinator.state
    assert desk.tell(ALICE, **keys)["ok"] is False
    assert desk.coordinator.state is before


def test_an_unsaved_subscriber_is_not_confirmed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str, mode: int) -> None:
        raise InputError("cannot be written (No space left on device)", file=path)

    monkeypatch.setattr(saved, "write_text", full)
    answer = desk.tell(ALICE, "subscribe", offset=0)
    assert not answer["ok"] and "No space left" in answer["error"]
    assert not desk.coordinator.state.members
