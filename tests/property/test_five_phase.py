"""The five-phase update under loss, doubles, disorder, crashes: it is safe, and it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.services.five_phase.messages import (
    Acknowledge,
    BeginUpdate,
    InstallTables,
    Phase,
    Subscribe,
    Tick,
)
from sar_agent.services.five_phase.protocol import CoordinatorState, LeaseRules, step
from tests.examples import examples
from tests.worlds.five_phase_world import Subscriber, World

OFTEN = ["tick", "tick", "time", *["deliver"] * 4, "renew", "drain", "drain"]
EVENTS = [
    *("begin", "tick", "time", "deliver", "twice", "lose", "renew", "drain", "sm_is_done"),
    *("read_back", "restart", "die", "leave", "give_up", "join"),
    *OFTEN,
]
EVENT = st.tuples(st.sampled_from(EVENTS), st.integers(0, 999))


def happen(world: World, event: str, pick: int) -> None:
    who = world.subscribers[pick % len(world.subscribers)]
    match event:
        case "time":
            world.time((1 + pick % 40) / 40 * world.rules.lease * 0.6)
        case "deliver" | "lose":
            getattr(world, event)(pick)
        case "twice":
            world.deliver(pick, twice=True)
        case "renew" | "drain" | "die" | "leave":
            getattr(world, event)(who)
        case "join":
            name = str(len(world.subscribers))
            if len(world.subscribers) < 6:
                new = Subscriber(name, name, rate=(0.95, 1.0, 1.05)[pick % 3])
                world.subscribers.append(new)
                world.renew(new)
        case _:
            getattr(world, event)()
    world.check()


def world_of(count: int, drop: bool, strikes: int = 3) -> World:
    rules = LeaseRules(
        lease=12.0, deadline=6.0, repeat=0.5, lapsed_is_sheltered=drop, strikes=strikes
    )
    world = World(
        rules, [Subscriber(str(n), str(n), (0.95, 1.0, 1.05)[n % 3]) for n in range(count)]
    )
    for one in world.subscribers:
        world.renew(one)
    while world.bag:
        world.deliver(0)
    assert all(one.uses == {0} for one in world.subscribers)
    return world


@examples(400)
@given(st.integers(1, 4), st.booleans(), st.sampled_from([1, 3]), st.lists(EVENT, max_size=120))
def test_tables_never_change_under_a_subscriber_and_every_run_ends(
    count: int, drop: bool, strikes: int, events: list[tuple[str, int]]
) -> None:
    """With one strike, those who are late once are let go, and they, too, are safe."""
    world = world_of(count, drop, strikes)
    for event, pick in events:
        happen(world, event, pick)
    world.calm()
    # Afterwards another update goes through: nobody is left in its way.
    installs = world.installs
    world.begin()
    world.tick()
    world.calm()
    dead = any(not one.alive for one in world.subscribers)
    assert world.installs == installs + 1 or dead


@examples(200)
@given(st.lists(EVENT, min_size=20, max_size=80), st.booleans())
def test_every_step_of_a_run_may_be_the_last_before_a_crash(
    events: list[tuple[str, int]], drop: bool
) -> None:
    world = world_of(3, drop)
    world.begin()
    for event, pick in events:
        happen(world, event, pick)
        world.restart()
        world.check()
    world.calm()


def test_a_late_subscriber_is_released_when_it_has_left_offset_0() -> None:
    world = world_of(2, drop=False, strikes=1)
    late = world.subscribers[1]
    world.begin()
    for _ in range(40):  # it renews its lease and does not drain
        world.tick()
        world.renew(late)
        while world.bag:
            world.deliver(0)
        world.drain(world.subscribers[0])
        world.time(0.5)
        world.check()
    assert world.done[-1].why and not world.installs
    assert late.uses == {1}, "it got no lease"
    world.begin()
    world.tick()
    world.calm()
    assert world.installs == 1 and late.uses == {1}


def test_a_released_subscriber_is_awaited_until_its_lease_ends() -> None:
    """It heard of no update, and is on offset 0 by right."""
    world = world_of(2, drop=False, strikes=1)
    heard, late = world.subscribers
    runs = 0
    for _ in range(60):
        if world.state.phase is Phase.IDLE:
            world.begin()
            runs += 1
        world.tick()
        world.renew(heard)
        world.bag = [letter for letter in world.bag if letter[0] != late.name]
        while world.bag:
            world.deliver(0)
            world.bag = [letter for letter in world.bag if letter[0] != late.name]
        world.drain(heard)
        world.check()
        assert late.uses == {0} or world.now > 100 + world.rules.lease / 2
        world.time(0.25)
        world.check()
    assert runs > 1 and world.installs and late.uses == {1}


def test_the_world_finds_a_coordinator_that_does_not_wait() -> None:
    """The test of the test: one that installs at once is caught."""
    world = world_of(2, drop=False)
    world.begin()
    members = {n: type(m)(m.job, m.uid, m.lease_until, m.since, acked=True)
               for n, m in world.state.members.items()}  # fmt: skip
    world.state = CoordinatorState(**{**vars(world.state), "members": members})
    world.tick()
    try:
        world.check()
    except AssertionError:
        return
    raise AssertionError("tables changed under two subscribers and nobody saw it")


@given(st.lists(st.sampled_from([Phase.UNPATH, Phase.REPATH, Phase.IDLE]), max_size=5))
def test_acknowledgements_of_other_updates_and_phases_count_for_nothing(
    phases: list[Phase],
) -> None:
    rules = LeaseRules()
    state, _ = step(CoordinatorState(), Subscribe("a", "1", 7, 0, 0), 0.0, rules)
    state, _ = step(state, BeginUpdate(1, 50), 1.0, rules)
    assert state.update == 50
    for phase in phases:
        state, _ = step(state, Acknowledge("a", phase, 49), 1.0, rules)
        if phase is not Phase.UNPATH:
            state, _ = step(state, Acknowledge("a", phase, 50), 1.0, rules)
    _, actions = step(state, Tick(), 1.1, rules)
    assert InstallTables() not in actions
    state, _ = step(state, Acknowledge("a", Phase.UNPATH, 50), 1.2, rules)
    _, actions = step(state, Tick(), 1.3, rules)
    assert actions == (InstallTables(),)
