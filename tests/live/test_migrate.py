"""libsar_migrate in separate processes: notices of a real OpenSM over ibsim, messages with real
credentials. The coordinator is that of the tests, the queue pairs are a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.process import wait_for
from tests.worlds.live.coordinator import Coordinator, coordinator, now_ns
from tests.worlds.live.site import site
from tests.worlds.live.subscriber import Subscriber

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
