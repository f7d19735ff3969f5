"""The agent's side of a five-phase update, against stand-ins; the machine itself is in
tests/property/test_five_phase.py, the real parties in tests/live/test_five_phase.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.outcome import Result
from sar_agent.agent.rollback import rollback
from sar_agent.errors import SarError, Unserved
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.services.five_phase.messages import (
    Phase,
)
from tests.worlds.fake_opensm import job
from tests.worlds.five_phase_agent import JOBS, NAME, Subscriber, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    assert world.once().result is Result.INSTALLED
    return world


def test_subscribers_are_on_offset_1_while_tables_change_and_only_those_of_offset_0_do(
    world: World,
) -> None:
    one, two = Subscriber(world), Subscriber(world, "00000000000000bb", "2")
    during: list[tuple[int, int, Phase]] = []
    world.bridge.on_load.append(lambda: during.append((one.offset, two.offset, world.phase)))
    before = world.tables()
    world.source.records = (*JOBS, job("3", "n003", "n007", "n011"))
    report = world.once()
    assert report.result is Result.INSTALLED, report.sentence
    assert during == [(1, 1, Phase.INSTALL)]
    assert (one.offset, two.offset, world.phase) == (0, 0, Phase.IDLE)
    after = world.tables()
    assert (before.forwarding[0] != after.forwarding[0]).any()
    assert (before.forwarding[1] == after.forwarding[1]).all()
    assert before.service_levels is not None and after.service_levels is not None
    assert (before.service_levels[1] == after.service_levels[1]).all()
    row = world.agent.committer.decisions.history.last(1)[0]
    assert row.how == "five-phase" and row.phases is not None
    assert row.phases["subscribers"] == 2 and row.phases["late"] == 0
    assert set(row.phases["seconds"]) == {"unpath", "install", "repath"}
    value = world.agent.metrics.registry.get_sample_value
    assert value("sar_agent_updates_total", {"method": "five-phase", "result": "installed"}) == 1
    assert value("sar_agent_update_phase") == 0
    assert "five-phase" in report.sentence


def test_a_silent_subscriber_of_an_ended_job_is_released(world: World) -> None:
    Subscriber(world)
    deaf = Subscriber(world, "00000000000000bb", "2")
    deaf.deaf = True
    world.fewer_jobs()  # job 2 is over, as the queue tells at the look
    assert world.once().result is Result.INSTALLED
    assert set(world.agent.updates.coordinator.state.members) == {NAME}


def test_a_load_that_is_refused_brings_everybody_back(world: World) -> None:
    one = Subscriber(world)
    world.bridge.refuse = ["generation 1 stays in force: the file is bad (test)"]
    world.fewer_jobs()
    report = world.once()
    assert report.result is Result.FAILED and "the file is bad" in report.sentence
    assert (one.offset, world.phase) == (0, Phase.IDLE)
    assert [kind for kind, _ in one.seen] == ["unpath", "repath"]


def test_a_plugin_that_knows_no_notices(world: World) -> None:
    world.update |= {"deadline_seconds": 3}
    world.restart()
    Subscriber(world)

    def unknown(kind: str, update: int, generation: int) -> None:
        raise SarError("unknown request; there are status, load GENERATION and dump")

    world.bridge.notice = unknown  # type: ignore[method-assign]
    world.fewer_jobs()
    report = world.once()
    assert report.result is Result.FAILED
    assert "sends no notice" in report.sentence and "same release" in report.sentence
    assert world.phase is Phase.IDLE


def test_without_saved_subscribers_their_leases_are_awaited(world: World) -> None:
    for name in ("update.json", "subscribers.jsonl"):
        (world.folder / "state" / name).unlink(missing_ok=True)
    world.update |= {"lease_seconds": 600}
    world.restart(known=False)
    world.fewer_jobs()
    report = world.once()
    assert report.result is Result.LATER and "who has subscribed" in report.sentence


def test_a_cable_that_comes_back_moves_the_shelter_only_when_all_are_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    whole = world.fabric
    down = np.flatnonzero((whole.channel_source == 0) & (whole.channel_port == 5)).tolist()
    write_ibsim_net(whole.with_links_down(down), world.net)
    world.once()
    one, before = Subscriber(world), world.tables()

    def shelter_moved() -> bool:  # of the ways to hosts: switches have one LID
        old, new = (file.forwarding[1][:, : whole.terminals] for file in (before, world.tables()))
        return bool((old != new).any())

    write_ibsim_net(whole, world.net)
    world.bridge.topology_changes += 1
    used: list[int] = []
    world.bridge.on_load.append(lambda: used.append(one.offset))
    report = world.once()
    assert report.result is Result.INSTALLED and "five-phase" in report.sentence
    assert (world.tables().forwarding[0] != before.forwarding[0]).any()
    assert not shelter_moved()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.SHELTER), report.sentence
    assert shelter_moved()
    assert used[0] == 1 and used[-1] == 0, "nobody is on tables that change"
    assert world.once().result is Result.NOTHING


def test_a_cable_that_the_shelter_needs_is_mended_at_once(world: World) -> None:
    """Beyond the protocol: OpenSM has lost those packets already."""
    Subscriber(world)
    fabric = world.fabric
    down = np.flatnonzero((fabric.channel_source == 0) & (fabric.channel_port == 5)).tolist()
    write_ibsim_net(fabric.with_links_down(down), world.net)
    world.bridge.topology_changes += 1
    report = world.once()
    assert report.result is Result.INSTALLED and "five-phase" not in report.sentence


def test_a_rollback_does_not_change_tables_under_subscribers(world: World) -> None:
    world.fewer_jobs()
    world.once()
    Subscriber(world)
    with pytest.raises(Unserved, match="1 subscribers have been promised"):
        rollback(world.config, 1, None)
