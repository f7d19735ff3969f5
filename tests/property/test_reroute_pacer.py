"""The pacing of reroutes under any sequence of events, on a clock that the test sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.agent.decide import Reason
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.config.model import AgentConfig

seconds = st.floats(0, 20, allow_subnormal=False).map(lambda x: round(x, 2))


@st.composite
def paces(draw):
    staleness = draw(seconds)
    return AgentConfig(
        interval_seconds=draw(st.floats(0.1, 40)),
        debounce_seconds=draw(seconds),
        debounce_max_seconds=min(draw(seconds), staleness),
        min_install_interval_seconds=min(draw(seconds), staleness),
        min_gain=draw(st.sampled_from([0.0, 0.1, 0.5])),
        max_staleness_seconds=staleness,
    )


@dataclass
class World:
    """A queue, and a loop as the daemon's is, that takes `work` seconds for each pass."""

    pace: AgentConfig
    work: float
    slurm_away: tuple[float, float] = (inf, inf)
    now: float = 0.0
    version: int = 0
    """What the queue shows; each change of the jobs is another."""
    routed: int = -1
    installs: list[tuple[float, bool]] = field(default_factory=list)
    """(when, urgent)"""
    looks: list[float] = field(default_factory=list)
    seen: float = inf
    """When the version that is not routed for was first seen."""
    acted: list[tuple[float, float]] = field(default_factory=list)
    """(when a change was seen, when it was installed for)"""

    def run(self, events, gains, urgent) -> None:
        """`events`: (time, jobs changed). `gains` are of the plans, in turn; a plan for which
        `urgent` says so answers trouble."""
        pacing = Pacing(self.pace, patient=True, clock=lambda: self.now)
        waiting = sorted(events)
        gains, urgent = iter(gains), iter(urgent)
        end = max((at for at, _ in events), default=0.0) + 200
        without_pause, left = 0, len(waiting)
        while self.now < end:
            due = self.now + pacing.left()
            if waiting and waiting[0][0] <= due:
                at, changes = waiting.pop(0)
                self.now = max(self.now, at)
                self.version += changes
                pacing.heard(at)
                continue
            nothing_new = due == self.now and len(waiting) == left
            without_pause, left = without_pause + 1 if nothing_new else 0, len(waiting)
            assert without_pause < 4, "it observes again and again while nothing happens"
            self.now = due
            self.look(pacing, waiting, gains, urgent)

    def look(self, pacing, waiting, gains, urgent) -> None:
        pacing.begin()
        self.looks.append(self.now)
        began, version = self.now, self.version
        if not self.slurm_away[0] <= began < self.slurm_away[1]:
            self.act(pacing, version, gains, urgent)
        self.now = began + self.work
        while waiting and waiting[0][0] <= self.now:  # meanwhile
            at, changes = waiting.pop(0)
            self.version += changes
            pacing.heard(at)
        pacing.end()

    def act(self, pacing, version, gains, urgent) -> None:
        if version == self.routed:
            pacing.calm()
            self.seen = inf
            return
        self.seen = min(self.seen, self.now)
        trouble = next(urgent, False)
        reason = Reason.FABRIC if trouble else Reason.JOBS
        if pacing.rest(reason) > 0:
            return
        if trouble or pacing.worth(next(gains, 0.0)):
            self.routed = version
            self.installs.append((self.now, trouble))
            self.acted.append((self.seen, self.now))
            self.seen = inf
            pacing.acted()


events = st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=40)
gains = st.lists(st.sampled_from([0.0, 0.05, 0.3, 0.9]), max_size=60)
troubles = st.lists(st.sampled_from([False, False, False, True]), max_size=60)
work = st.sampled_from([0.0, 0.1, 2.0])
TINY = 1e-6


@given(paces(), work, events, gains, troubles)
def test_no_event_is_lost_and_none_waits_long_for_a_look(pace, work, events, gains, troubles):
    world = World(pace, work)
    world.run(events, gains, troubles)
    for at, _ in events:
        after = [look for look in world.looks if look >= at]
        assert after, "never looked at"
        assert after[0] - at <= pace.debounce_max_seconds + work + TINY


@given(paces(), work, events, gains, troubles)
def test_installs_for_jobs_keep_their_distance(pace, work, events, gains, troubles):
    world = World(pace, work)
    world.run(events, gains, troubles)
    for (before, _), (after, urgent) in zip(world.installs, world.installs[1:], strict=False):
        assert urgent or after - before >= pace.min_install_interval_seconds - TINY


@given(paces(), work, events, gains, troubles)
def test_what_was_seen_is_acted_on_in_time(pace, work, events, gains, troubles):
    world = World(pace, work)
    world.run(events, gains, troubles)
    for seen, acted in world.acted:
        # The last install may be as young as the change, so that the distance comes on top.
        assert acted - seen <= pace.max_staleness_seconds + work + TINY
    assert world.routed == world.version, "the last change is routed for, too"


@given(paces(), work, events, st.floats(0, 50), st.floats(0, 60))
def test_an_outage_of_slurm_ends_without_a_person(pace, work, events, start, length):
    world = World(pace, work, (start, start + length))
    world.run(events, [], [])
    assert world.routed == world.version
    back = next((look for look in world.looks if look >= start + length), None)
    assert back is not None and back - (start + length) <= pace.interval_seconds + work + TINY


@given(paces(), st.integers(2, 200))
def test_a_burst_is_one_look(pace, count):
    """Events closer together than the debounce, over in less than its bound."""
    pacing = Pacing(pace, patient=True, clock=lambda: 0.0)
    pacing.begin()
    pacing.end()
    step = min(pace.debounce_seconds, pace.debounce_max_seconds) / count / 2
    for n in range(count):
        if n:
            assert pacing.left() > (n - 1) * step or not step or pace.interval_seconds < n * step
        pacing.heard(n * step)
    last = (count - 1) * step
    assert pacing.left() == min(
        last + pace.debounce_seconds, pace.debounce_max_seconds, pace.interval_seconds
    )


@given(paces())
def test_trouble_never_waits(pace):
    pacing = Pacing(pace, patient=True)
    pacing.begin()
    pacing.acted()
    for reason in (Reason.FIRST, Reason.FALLBACK, Reason.GENERATION, Reason.FABRIC):
        assert pacing.rest(reason) == 0
