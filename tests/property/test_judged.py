"""The plugin's own repairs in random worlds, judged from the definition."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.examples import share
from tests.worlds.judge import Judge
from tests.worlds.live.built import built
from tests.worlds.repair_steps import SHAPES, World, build, plan, shortest
from tests.worlds.sweeps_program import Chosen, SweepsProgram, sweeps

MOST_STEPS = 20


def cut_cable(world: World) -> bool:
    left = sorted(world.cables - world.cut)
    world.cut |= set(world.dice.sample(left, min(len(left), world.dice.choice((1, 1, 2)))))
    return bool(left)


def cables_back(world: World) -> bool:
    back = world.dice.random() < 0.5
    some = set(sorted(world.cut)[:1]) if back else set(world.cut)
    world.cut -= some
    return bool(some)


def kill_switch(world: World) -> bool:
    live = sorted(set(world.ports) - world.dead)
    if len(live) > 2:
        world.dead.add(world.dice.choice(live))
    return len(live) > 2


def switches_back(world: World) -> bool:
    back = bool(world.dead)
    world.dead.clear()
    return back


def hosts_off(world: World) -> bool:
    world.off = {h for h in world.hosts if world.dice.random() < 0.3}
    return True


def move_host(world: World) -> bool:
    """To a port without a cable, or where one was plugged out."""
    host = world.dice.choice(sorted(world.hosts))
    port = world.free_port(world.dice.choice(sorted(world.ports)), former=True)
    if port is None:
        return False
    world.cables = {c for c in world.cables if port not in c}
    world.hosts[host] = port
    return True


def add_host(world: World) -> bool:
    port = world.free_port(world.dice.choice(sorted(world.ports)), former=True)
    if port is None or len(world.hosts) > 20:
        return False
    world.cables = {c for c in world.cables if port not in c}
    world.cut &= world.cables
    world.add_host(port)
    return True


def swap_lids(world: World) -> bool:
    one, other = world.dice.sample(sorted(world.hosts), 2)
    world.lid[one], world.lid[other] = world.lid[other], world.lid[one]
    return True


def move_cable(world: World) -> bool:
    cable = world.dice.choice(sorted(world.cables))
    to = world.free_port(world.dice.choice(sorted(world.ports)))
    if to is None:
        return False
    world.cables.remove(cable)
    world.cut.discard(cable)
    world.cables.add((cable[0], to))
    return True


def swap_cables(world: World) -> bool:
    """Two cables change places at one end."""
    if len(world.cables) < 2:
        return False
    one, other = world.dice.sample(sorted(world.cables), 2)
    world.cables -= {one, other}
    world.cut -= {one, other}
    world.cables |= {(one[0], other[1]), (other[0], one[1])}
    return True


def replace_switch(world: World) -> bool:
    old = world.dice.choice(sorted(world.ports))
    new = world.add_switch(world.ports.pop(old))
    del world.lid[old]
    world.dead.discard(old)

    def renamed(port: tuple[int, int]) -> tuple[int, int]:
        return (new, port[1]) if port[0] == old else port

    world.cables = {(renamed(a), renamed(b)) for a, b in world.cables}
    world.cut = {(renamed(a), renamed(b)) for a, b in world.cut}
    world.hosts = {h: renamed(port) for h, port in world.hosts.items()}
    return True


def new_switch(world: World) -> bool:
    if len(world.ports) > 12:
        return False
    old = sorted(world.ports)
    new = world.add_switch(8)
    joined = [world.connect(new, world.dice.choice(old)) for _ in range(world.dice.randint(1, 3))]
    if world.dice.random() < 0.5 and (port := world.free_port(new)):
        world.add_host(port)
    return any(joined)


EVENTS = {
    "cable": cut_cable,
    "back": cables_back,
    "switch dies": kill_switch,
    "switches back": switches_back,
    "hosts off": hosts_off,
    "host moves": move_host,
    "new host": add_host,
    "LIDs swapped": swap_lids,
    "cable moves": move_cable,
    "cables swapped": swap_cables,
    "replaced": replace_switch,
    "new switch": new_switch,
}
WEIGHTS = [6, 5, 2, 2, 1, 1, 1, 0.7, 1.5, 1, 0.7, 0.7]


class Story:
    """One world: sweeps, and what the judge says of each."""

    def __init__(self, world: World, program: SweepsProgram, seen: Counter[str]) -> None:
        self.world, self.program, self.seen = world, program, seen
        self.judge, self.known = Judge(), set[int]()
        self.foreign = self.restarted = False

    def restart(self) -> None:
        """OpenSM begins again with the file of the plan, and knows no table. It assumes that the
        switches have this plan, as nothing would prove another engine's routes either."""
        self.program.restart()
        self.restarted = True

    def sweep(self, event: str) -> Chosen | None:
        """None where the plugin has no routes."""
        live, dice = self.world.fabric(), self.world.dice
        if len(live.hosts) < 2:
            return None
        self.judge.begin(live)
        # Nothing is promised of a switch that does not answer in a sweep that moves its cables.
        moved = {s for s, _ in self.judge.fresh - self.judge.returned}
        may = [s for s in live.switches if s in self.known and s not in moved]
        silent = [s for s in may if dice.random() < 0.05 and not self.restarted]
        other = shortest(self.world, live) if self.foreign else None
        if other is not None:  # what is in force is another engine's, and nobody has proved it
            self.judge.sent(other)
            self.judge.aged()
        chosen = self.program.sweep(self.world, live, silent, other)
        self.known, self.foreign = set(live.switches), False
        self.count(event, chosen)
        self.seen["with a silent switch"] += bool(silent) and chosen.how == "repaired"
        self.seen["not drained"] += self.judge.undrained and chosen.how == "repaired"
        if chosen.how == "refused":
            self.check(event, "" if chosen.why.strip(" /") else "refused without a reason")
            return None
        told = "" if not self.judge.judge(chosen.tables, silent) else "mixture: "
        told = told and told + self.judge.judge(chosen.tables, silent)
        if self.restarted:
            another = self.judge.judge(shortest(self.world, live))
            self.seen["restarts"] += 1
            self.seen["restarts that may circle"] += bool(told)
            self.seen["restarts that may circle with another engine"] += bool(another)
            told = ""
        if other is None or not told:
            self.check(event, told)
        elif not self.sound(other):
            self.seen["the other engine's own circle"] += 1
        else:
            self.check(event, told)
        ends = {lid: at for lids, (at, _) in live.hosts.values() for lid in lids}
        ends |= {self.world.lid[s]: s for s in live.switches}
        if not chosen.dropping:
            self.check(event, self.judge.steady(chosen.tables))
        elif not self.judge.lost(chosen.tables, ends):
            self.check(event, "packets are said to be dropped, and none are")
        self.judge.sent(chosen.tables, silent)
        if self.restarted:
            self.judge.aged()
        self.restarted = False
        return chosen

    def count(self, event: str, chosen: Chosen) -> None:
        """By topology and event. The agent is asked where no repair serves all hosts, and where one
        is refused since nothing proves it."""
        how = chosen.how
        if how == "refused":
            how = "refused" if "nothing proves" in chosen.why else "asked"
        name = "two at once" if "+" in event else event or "sweep"
        self.seen[f"{self.world.shape}, {name}: {how}"] += 1
        self.seen["sweeps"] += 1
        self.seen["judged repairs"] += how == "repaired"
        self.seen["judged repairs with LMC"] += how == "repaired" and self.world.lmc > 0
        self.seen["unrouted"] += chosen.unrouted > 0

    def sound(self, tables: dict[int, dict[int, int]]) -> bool:
        return not self.judge.steady(tables)

    def check(self, event: str, told: str) -> None:
        assert not told, f"{event}: {told}"

    def go(self, event: str, last: bool) -> bool:
        """The sweep of an event, and those that follow: the plugin's own code says whether it asks
        for one (follow.c); where switches have not answered, OpenSM sweeps again. It may do so,
        too, while packets of older tables are on their way, and unless this event is the `last`
        one, the next may come before all is settled. In the end no host's packets are dropped, or
        the routes are refused, with a reason."""
        chosen = self.sweep(event)
        for _ in range(MOST_STEPS):
            if chosen is None:
                return len(self.world.fabric().hosts) < 2
            if not (chosen.follows or chosen.unconfirmed):
                self.seen["settled"] += 1
                self.check(event, "nothing follows, and packets are dropped" * chosen.dropping)
                return True
            if self.world.dice.random() < 0.8:
                self.judge.aged()
                self.program.aged()
            elif self.world.dice.random() < 0.5 and not last:
                self.seen["another change before all is settled"] += 1
                return True
            chosen = self.sweep("step")
        self.check(event, f"not settled after {MOST_STEPS} more sweeps")
        return True


def tell(seed: int, shape: str, folder: Path, program: Path, seen: Counter[str]) -> None:
    dice = random.Random(f"{shape} {seed}")
    world = build(dice, shape)
    live = world.fabric()
    with sweeps(plan(world, live), folder, program) as running:
        story = Story(world, running, seen)
        try:
            assert story.sweep("begin") is not None or len(live.hosts) < 2
            for left in reversed(range(dice.randint(4, 14))):
                events = dice.choices(list(EVENTS), WEIGHTS, k=dice.choice((1, 1, 1, 2)))
                event = "+".join(name for name in events if EVENTS[name](world))
                if dice.random() < 0.6:
                    story.judge.aged()
                    running.aged()
                if dice.random() < 0.05 and not story.foreign:
                    story.restart()
                foreign = story.foreign
                if not story.go(event, last=not left):
                    if foreign or dice.random() < 0.6:
                        break  # the agent has a new plan
                    story.foreign = True
        except AssertionError as error:
            said = folder / f"{shape}-{seed}.txt"
            said.write_text("".join(running.log))
            raise AssertionError(f"{shape} {seed}: {error} ({said})") from error


@pytest.fixture(scope="module")
def program() -> Path:
    return built("opensm_bridge", "sweeps_run")


@pytest.mark.parametrize("shape", SHAPES)
def test_no_packet_circles_or_is_lost(shape: str, program: Path, tmp_path: Path) -> None:
    seen = Counter[str]()
    for seed in range(share(100)):
        tell(seed, shape, tmp_path, program, seen)
    print(shape, dict(seen))
    assert seen["judged repairs"] > share(25)


REPAIRS, PARTS = 100_000, 20


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_many_repairs(part: int, program: Path, tmp_path: Path) -> None:
    seen, seed = Counter[str](), 1_000_000 * (part + 1)
    while seen["judged repairs"] < REPAIRS // PARTS:
        for shape in SHAPES:
            tell(seed, shape, tmp_path, program, seen)
        seed += 1
    print(f"part {part}: {json.dumps(seen)}")
