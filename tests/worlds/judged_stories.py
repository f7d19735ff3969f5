"""The plugin's own repairs in random worlds, judged from the definition (judge.py).

`python -m tests.property.judge_repairs` tells many stories and prints totals."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.worlds.judge import Fabric, Judge, Table
from tests.worlds.repair_steps import World, build, plan, shortest
from tests.worlds.sweeps_program import Chosen, SweepsProgram, sweeps
from tests.worlds.world_events import EVENTS, WEIGHTS

MOST_STEPS = 12


class Story:
    """One world: sweeps, and what the judge says of each."""

    def __init__(self, world: World, program: SweepsProgram, seen: Counter[str]) -> None:
        self.world, self.program, self.seen = world, program, seen
        self.judge, self.known = Judge(), set[int]()
        self.foreign = self.restarted = self.silent = False
        self.away = ""
        """Another subnet manager is master before the next sweep: "idle", or "busy" with its own
        routes."""
        self.hurry = world.dice.choice((0.05, 0.4))
        self.weights = world.dice.choice(list(WEIGHTS.values()))

    def restart(self) -> None:
        """OpenSM begins again with the file of the plan, and knows no table. It assumes that the
        switches have this plan, as nothing would prove another engine's routes either."""
        self.program.restart()
        self.restarted, self.away = True, ""

    def another_master(self, live: Fabric) -> dict[int, Table] | None:
        """Its routes, if it has sent any. It does not know the switches that have just come up."""
        self.program.lost()
        self.judge.aged()
        if self.away == "idle":
            return None
        theirs = {s: t if s in self.known else {} for s, t in shortest(self.world, live).items()}
        self.program.has({s: row for s, row in theirs.items() if s in self.known})
        self.judge.sent(theirs)
        self.judge.aged()
        return theirs

    def sweep(self, event: str) -> Chosen | None:
        """None where the plugin has no routes."""
        live, dice = self.world.fabric(), self.world.dice
        if len(live.hosts) < 2:
            return None
        self.judge.begin(live)
        # Nothing is promised of a switch that does not answer in a sweep that moves its cables.
        moved = {s for s, _ in self.judge.fresh - self.judge.returned}
        may = [s for s in live.switches if s in self.known and s not in moved]
        if self.restarted or self.silent or self.away:  # what was not answered is sent again
            may = []
        silent = [s for s in may if dice.random() < 0.05]
        other = shortest(self.world, live) if self.foreign else None
        if other is not None:  # what is in force is another engine's, and nobody has proved it
            self.judge.sent(other)
            self.judge.aged()
        theirs = self.another_master(live) if self.away else None
        chosen = self.program.sweep(self.world, live, silent, other)
        self.known, self.foreign, self.silent = set(live.switches), False, bool(silent)
        self.count(event, chosen)
        unproved = " unproved " in chosen.error
        if self.away:
            how = "unproved" if unproved else chosen.how
            self.seen[f"master again, the other one {self.away}, {how}"] += 1
            other, self.away = theirs, ""
        self.seen["with a silent switch"] += bool(silent) and chosen.how == "repaired"
        self.seen["not drained"] += self.judge.undrained and chosen.how == "repaired"
        if chosen.how == "refused":
            self.check(event, "" if chosen.error else "refused without a reason")
            return None
        told = "" if not self.judge.judge(chosen.tables, silent) else "mixture: "
        told = told and told + self.judge.judge(chosen.tables, silent)
        if self.restarted:
            another = self.judge.judge(shortest(self.world, live))
            self.seen["restarts"] += 1
            self.seen["restarts that may circle"] += bool(told)
            self.seen["restarts that may circle with another engine"] += bool(another)
            told = ""
        if unproved:  # nobody has routes that are proved, and that is said
            pass
        elif other is None or not told:
            self.check(event, told)
        elif not self.sound(other):
            self.seen["the other engine's own circle"] += 1
        else:
            self.check(event, told)
        own = [(self.world.lid[s], s) for s in live.switches]
        lost = self.judge.lost(chosen.tables, own)
        if chosen.drops != bool(lost):
            self.check(event, f"dropped and not said: {lost}" if lost else "said and not dropped")
        if not lost:
            self.check(event, self.judge.steady(chosen.tables))
        self.judge.sent(chosen.tables, silent)
        if self.restarted or unproved:
            self.judge.aged()
        self.restarted = False
        return chosen

    def count(self, event: str, chosen: Chosen) -> None:
        """By topology and event. The agent is asked where no repair serves all hosts, and where one
        is refused since nothing proves it."""
        how = chosen.how
        if how == "refused":
            how = "refused" if "nothing proves" in chosen.error else "asked"
        name = "two at once" if "+" in event else event or "sweep"
        self.seen[f"{self.world.shape}, {name}: {how}"] += 1
        self.seen["sweeps"] += 1
        self.seen["judged repairs"] += how == "repaired"
        self.seen["judged repairs with LMC"] += how == "repaired" and self.world.lmc > 0
        self.seen["put off"] += chosen.put_off > 0
        self.seen["drops for a step"] += chosen.drops

    def sound(self, tables: dict[int, dict[int, int]]) -> bool:
        return not self.judge.steady(tables)

    def check(self, event: str, told: str) -> None:
        assert not told, f"{event}: {told}"

    def go(self, event: str, last: bool) -> bool:
        """The sweep of an event, and those that the plugin asks for by itself (events.c). Unless
        it is the `last` one, the next event may come first. False where there are no routes."""
        chosen = self.sweep(event)
        for _ in range(MOST_STEPS):
            if chosen is None:
                return len(self.world.fabric().hosts) < 2
            if not last and self.world.dice.random() < self.hurry:
                self.seen["another change before all is settled"] += 1
                return True  # the next event comes first
            if self.silent:  # OpenSM sends it again
                chosen = self.sweep("sent again")
                continue
            waited = self.program.follow()
            if waited is None:
                self.seen["settled"] += 1
                self.check(event, "dropped for ever" if chosen.drops else "")
                return True
            if waited:
                self.judge.aged()
            chosen = self.sweep("step")
        raise AssertionError(f"{event}: {MOST_STEPS} steps, and another one is to follow")


def tell(seed: int, shape: str, folder: Path, program: Path, seen: Counter[str]) -> None:
    dice = random.Random(f"{shape} {seed}")
    world = build(dice, shape)
    live, masters = world.fabric(), random.Random(f"{shape} {seed} masters")
    with sweeps(plan(world, live), folder, program) as running:
        story = Story(world, running, seen)
        try:
            assert story.sweep("begin") is not None or len(live.hosts) < 2
            for left in reversed(range(dice.randint(4, 14))):
                events = dice.choices(list(EVENTS), story.weights, k=dice.choice((1, 1, 1, 2)))
                event = "+".join(name for name in events if EVENTS[name](world))
                if dice.random() < 0.6:
                    story.judge.aged()
                    running.aged()
                if dice.random() < 0.05 and not story.foreign:
                    story.restart()
                if masters.random() < 0.05 and not (story.foreign or story.restarted):
                    story.away = masters.choice(("idle", "busy"))
                foreign = story.foreign
                if not story.go(event, last=not left):
                    if foreign or dice.random() < 0.6:
                        break  # the agent has a new plan
                    story.foreign = True
        except AssertionError as error:
            said = folder / f"{shape}-{seed}.txt"
            said.write_text("".join(running.log))
            raise AssertionError(f"{shape} {seed}: {error} ({said})") from error
