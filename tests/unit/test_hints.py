"""Hints of users on their traffic, from the event until the job's end; weights of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.agent.hints import MOST_UNSEEN_HINTS, MOST_UNSEEN_OF_A_UID, SECONDS_UNSEEN, Hints
from sar_agent.demand.endpoints import mix_of_records
from sar_agent.demand.rates import route_demand
from sar_agent.events.inbox import JobReport
from sar_agent.events.message import RefusalReason
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs.record import JobRecord, merge_components

ROOT, ALICE, BOB = 0, 1001, 1002


def job(id: str, uid: int | None = ALICE, **more: object) -> JobRecord:
    return JobRecord(id, ("n1", "n2"), "RUNNING", uid=uid, **more)  # type: ignore[arg-type]


class World:
    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 1000.0
        self.refused: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.hints = Hints(self.folder, frozenset({ROOT}), self.refuse, clock=lambda: self.now)

    def refuse(self, why: RefusalReason, sentence: str) -> None:
        self.refused.append(sentence)

    def look(self, *records: JobRecord) -> dict[str, str | None]:
        """As a pass does."""
        self.hints.drop_ended(records)
        return {record.id: record.traffic for record in self.hints.apply(records)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_from_the_event_until_the_job_ends(world: World) -> None:
    world.hints.add([JobReport("7", ROOT, "weight=0.2")])
    assert world.look(job("7"), job("8")) == {"7": "weight=0.2", "8": None}
    assert world.hints.apply([job("7")])[0].weight == 0.2
    for _ in range(100):
        world.now += 50
        assert world.look(job("7"))["7"] == "weight=0.2", "as long as it runs"
    world.now += SECONDS_UNSEEN + 1
    world.look(job("8"))
    assert world.look(job("7"))["7"] is None, "a new job with an old number"


def test_on_somebody_else_s_job_it_is_refused_once(world: World) -> None:
    world.hints.add(
        [JobReport("7", BOB, "ring"), JobReport("8", BOB, "ring"), JobReport("9", BOB, "ring")]
    )
    assert world.look(job("7"), job("8", uid=None)) == {"7": None, "8": None}
    assert world.look(job("7"), job("8", uid=None), job("9", uid=BOB))["9"] == "ring"
    assert len(world.refused) == 2 and "job 7 is not one of uid 1002" in world.refused[0]


def test_nobody_takes_another_s_place(world: World) -> None:
    world.hints.add([JobReport("7", ROOT, "ring"), JobReport("7", BOB, "bitcomp")])
    assert world.look(job("7"))["7"] == "ring"
    world.now += 1
    world.hints.add([JobReport("7", ALICE, "bitcomp")])
    assert world.look(job("7"))["7"] == "bitcomp", "the last of those that count"


def test_tasks_and_components_have_numbers_of_their_own(world: World) -> None:
    world.hints.add([JobReport("12", ALICE, "ring"), JobReport("31", ALICE, "bitcomp")])
    task = job("10_2", raw=("12",))
    both = merge_components([job("30+0", raw=("30",)), job("30+1", raw=("31",))])
    assert world.look(task, *both, job("10_1", raw=("11",))) == {
        "10_2": "ring",
        "30": "bitcomp",
        "10_1": None,
    }


def test_it_outlives_the_agent(world: World) -> None:
    world.hints.add([JobReport("7", ALICE, "ring"), JobReport("8", BOB, None)])
    world.look(job("7"))
    world.restart()
    assert world.look(job("7"))["7"] == "ring"
    (world.folder / "hints.json").write_text("{")
    world.restart()
    assert world.look(job("7"))["7"] is None


def test_nobody_weighs_more_than_his_ports_can_send(world: World) -> None:
    """Routes of others would pay for it. A partition's hint (partition_hints) is the site's."""
    world.hints.add([JobReport("7", ALICE, "weight=100")])
    said = world.hints.apply([job("7"), job("8", traffic="weight=50"), job("9", traffic="ring")])
    assert [(one.weight, one.traffic) for one in said] == [
        (1, "weight=1"),
        (1, "weight=1"),
        (1, "ring"),
    ]
    world.hints.add([JobReport("7", ALICE, "weight=0.5")])
    assert world.look(job("7")) == {"7": "weight=0.5"}


def test_hints_on_jobs_that_nobody_has_seen_are_few(world: World) -> None:
    world.look(*(job(str(n)) for n in range(500)))
    mallory = [JobReport(str(10_000 + n), BOB, "ring") for n in range(400)]
    own = [JobReport(str(n), ALICE, "ring") for n in range(500)]
    root = [JobReport(str(20_000 + n), ROOT, "ring") for n in range(500)]
    world.hints.add([*mallory, *own, *root])
    assert len(world.refused) == 400 - MOST_UNSEEN_OF_A_UID
    assert len(world.hints._hints) == MOST_UNSEEN_OF_A_UID + 1000
    many = [JobReport(str(30_000 + n), 5000 + n % 100, "ring") for n in range(25_000)]
    world.hints.add(many)
    assert len(world.hints._hints) == MOST_UNSEEN_HINTS + 1000, "of all users"
    world.hints.add([JobReport("50000", ROOT, "ring")])
    assert len(world.hints._hints) == MOST_UNSEEN_HINTS + 1001


@pytest.mark.parametrize(
    ("hint", "weight"),
    [
        ("weight=0.25", 0.25), ("weight=.5", 0.5), ("weight=2", 2.0), (None, 1.0), ("ring", 1.0),
        ("weight=0", 1.0), ("weight=1e9", 1.0), ("weight=1000000", 1.0), ("weight=-1", 1.0),
    ],
)  # fmt: skip
def test_a_hint_that_makes_no_sense_is_none(hint: str | None, weight: float) -> None:
    assert JobRecord("1", ("n1",), "RUNNING", traffic=hint).weight == weight


def test_records_carry_their_weight_to_the_demand() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    hosts = (fabric.terminal_host[0], fabric.terminal_host[5])
    mix = mix_of_records(fabric, [JobRecord("7", hosts, "RUNNING", traffic="weight=0.5")]).mix
    assert mix.jobs[0].weight == 0.5
    assert route_demand(fabric, mix).tolist() == [0.5 * float(fabric.terminal_rate[0])]
