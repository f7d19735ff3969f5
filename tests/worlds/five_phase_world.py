"""A network of one coordinator, one SM and subscribers in which all goes wrong that can.

Messages lie in a bag: they are delivered in any order, twice, late or never. The subscriber here is
a model, written from the contract in slurm_spank/PROTOCOL.md; libsar_migrate is another one, in C.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sar_agent.services.five_phase.messages import (
    Acknowledge,
    Action,
    AskQueue,
    BeginUpdate,
    GiveUp,
    InstallTables,
    Message,
    Phase,
    RaiseNotice,
    RunEnded,
    RunningJobs,
    Subscribe,
    TablesInstalled,
    Tick,
    Unsubscribe,
)
from sar_agent.services.five_phase.protocol import (
    CoordinatorState,
    LeaseRules,
    Member,
    restarted,
    step,
)

SHELTERED = frozenset({Phase.UNPATH, Phase.INSTALL})
"""Phases in which a subscriber belongs on offset 1."""
RANK = {Phase.UNPATH: 1, Phase.INSTALL: 2, Phase.REPATH: 3, Phase.IDLE: 4}
Letter = tuple[str, Any]


@dataclass
class Subscriber:
    """`rate` is how fast its clock runs. `uses` are the offsets that its connections are on: both
    while it drains. It uses none before it was answered."""

    name: str
    job: str
    rate: float = 1.0
    uses: frozenset[int] = frozenset()
    target: int = 0
    seen: tuple[int, int] = (0, 0)
    lease_end: float = 0.0
    lease: float = 1.0
    fenced: bool = False
    alive: bool = True
    to_ack: tuple[Phase, int] | None = None

    def local(self, now: float) -> float:
        return now * self.rate

    def renewal(self, now: float) -> Letter:
        said = Subscribe(self.name, self.job, None, max(self.uses, default=0), self.seen[0])
        return ("coordinator", (said, self.local(now)))

    def time_goes_by(self, now: float) -> None:
        """Leaves offset 0 by itself before its lease ends."""
        local = self.local(now)
        if not self.uses:
            return
        if local >= self.lease_end - self.lease / 3 and not self.fenced:
            self.fenced, self.to_ack = True, None
            self._go(1)
        if local >= self.lease_end - self.lease / 12:
            self.drained()

    def drained(self) -> list[Letter]:
        """Its connections are where they should be."""
        if not self.uses:
            return []
        self.uses = frozenset({self.target})
        return self._acknowledge()

    def answered(self, phase: Phase, update: int, lease: float, sent: float, now: float) -> None:
        if sent + lease * 2 / 3 <= self.local(now):
            return  # too old to go by
        self.lease, self.lease_end = lease, max(self.lease_end, sent + lease)
        rank = (update, RANK[phase])
        if rank < self.seen and self.uses:
            return
        self.seen = max(self.seen, rank)
        if not self.uses:
            self.uses = frozenset({0 if phase not in SHELTERED else 1})
        if phase is Phase.IDLE:
            self.fenced = False
        self._told(phase, update)

    def noticed(self, phase: Phase, update: int) -> None:
        rank = (update, RANK[phase])
        if rank >= self.seen and self.uses:
            self.seen = rank
            self._told(phase, update)

    def _told(self, phase: Phase, update: int) -> None:
        if phase in SHELTERED:
            self.to_ack = (Phase.UNPATH, update)
            self._go(1)
        elif not self.fenced:
            self.to_ack = (Phase.REPATH, update) if phase is Phase.REPATH else None
            self._go(0)

    def _go(self, offset: int) -> None:
        self.target = offset
        self.uses = self.uses | {offset}

    def _acknowledge(self) -> list[Letter]:
        if self.to_ack is None:
            return []
        phase, update = self.to_ack
        return [("coordinator", (Acknowledge(self.name, phase, update), 0.0))]


@dataclass
class World:
    rules: LeaseRules
    subscribers: list[Subscriber] = field(default_factory=list)
    now: float = 100.0
    state: CoordinatorState = field(default_factory=CoordinatorState)
    bag: list[Letter] = field(default_factory=list)
    installing: bool = False
    done: list[RunEnded] = field(default_factory=list)
    installs: int = 0

    # -- what can happen -------------------------------------------------------------------------

    def time(self, seconds: float) -> None:
        self.now += seconds
        for one in self.subscribers:
            if one.alive:
                one.time_goes_by(self.now)

    def begin(self) -> None:
        if not self.installing:
            self._step(BeginUpdate(1, 0))

    def tick(self) -> None:
        self._step(Tick())

    def give_up(self) -> None:
        self._step(GiveUp("the test wants it"))

    def sm_is_done(self) -> None:
        """All switches have confirmed."""
        self.installing = False

    def read_back(self) -> None:
        """The driver looks at the tables, after an install or a restart."""
        if not self.installing:
            self._step(TablesInstalled())

    def renew(self, one: Subscriber) -> None:
        if one.alive:
            self.bag.append(one.renewal(self.now))

    def drain(self, one: Subscriber) -> None:
        if one.alive:
            self.bag += one.drained()

    def leave(self, one: Subscriber) -> None:
        if one.alive and one.uses:
            one.alive, one.uses = False, frozenset()
            self.bag.append(("coordinator", (Unsubscribe(one.name), 0.0)))

    def die(self, one: Subscriber) -> None:
        one.alive, one.uses = False, frozenset()

    def restart(self) -> None:
        """kill -9 of the agent: what is on the disk stays. A load under way goes on."""
        kept = {n: Member(m.job, m.uid, 0.0, 0.0) for n, m in self.state.members.items()}
        saved = CoordinatorState(
            self.state.phase, self.state.update, self.state.generation, self.state.why
        )
        self.state = restarted(replace(saved, members=kept), self.now, self.rules)

    def deliver(self, at: int, twice: bool = False) -> None:
        if not self.bag:
            return
        at %= len(self.bag)
        to, letter = self.bag[at] if twice else self.bag.pop(at)
        if to == "coordinator":
            message, sent = letter
            asks = isinstance(message, Subscribe)
            refused = asks and self.state.refuses(message, self.now, self.rules)
            self._step(message)
            if asks and not refused:
                answer = (self.state.phase, self.state.update, self.rules.lease, sent)
                self.bag.append((message.subscriber, ("answer", answer)))
            return
        one = next(s for s in self.subscribers if s.name == to)
        if one.alive and letter[0] == "answer":
            one.answered(*letter[1], self.now)
        elif one.alive:
            one.noticed(*letter[1])

    def lose(self, at: int) -> None:
        if self.bag:
            self.bag.pop(at % len(self.bag))

    # -- what follows ----------------------------------------------------------------------------

    def _step(self, message: Message) -> None:
        self.state, actions = step(self.state, message, self.now, self.rules)
        for action in actions:
            self._act(action)

    def _act(self, action: Action) -> None:
        match action:
            case RaiseNotice():
                letter = ("notice", (action.phase, action.update))
                self.bag += [(one.name, letter) for one in self.subscribers]
            case InstallTables():
                self.installing, self.installs = True, self.installs + 1
            case AskQueue():
                jobs: dict[str, int | None] = {
                    one.job: None for one in self.subscribers if one.alive
                }
                self._step(RunningJobs(jobs, self.now))
            case RunEnded():
                self.done.append(action)

    def check(self) -> None:
        """The property: tables of offset 0 never change under one who subscribed."""
        if self.installing:
            wrong = [one.name for one in self.subscribers if one.alive and 0 in one.uses]
            assert not wrong, (wrong, self.state)
        if self.installing:
            assert self.state.phase is Phase.INSTALL, self.state

    def at_home(self, one: Subscriber) -> bool:
        """On offset 0; but who gets no lease stays on 1."""
        struck = self.state.uncovered(one.job, None, self.now, self.rules)
        return one.uses == {1 if struck else 0}

    def calm(self) -> None:
        """Nothing goes wrong any more: all must come to an end."""
        for _ in range(400):
            if self.state.phase is Phase.IDLE and all(
                self.at_home(one) for one in self.subscribers if one.alive and one.uses
            ):
                return
            self.time(self.rules.lease / 20)
            self.check()
            for one in self.subscribers:
                self.drain(one)
                self.renew(one)
            self.sm_is_done()
            self.read_back()
            while self.bag:
                self.deliver(0)
                self.check()
            self.tick()
            self.check()
        raise AssertionError(f"it does not end: {self.state} {self.subscribers}")
