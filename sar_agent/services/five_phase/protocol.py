"""The coordinator as a function: state, message, time → state, actions.

The invariant: the tables of offset 0 never change (INSTALL) while a subscriber that was not dropped
uses offset 0. So a run waits in UNPATH until every subscriber has acknowledged *this* update; a
subscriber that comes later is told the phase and starts on offset 1. If one does not answer in
time, the run ends without an install, unless its job has ended. Messages may be lost, late or
duplicated: an acknowledgement counts for its own update and phase only, and both only ever rise.

The coordinator counts a lease from the arrival of the request, the subscriber from sending it, so
the lease ends there first; and the subscriber leaves offset 0 when a third of the lease is left.
Leases are not saved: a coordinator that restarts gives all subscribers a new lease, which ends
after any earlier one.

An empty queue drops no subscriber when it is first read, since the agent may lack the right to see
jobs. If the next reading is empty, too, subscribers that have not renewed their lease are dropped.

**Weak spot:** what is assumed, and cannot be seen from here: hosts send to offset 1 with the level
of its path records (otherwise both offsets share a lane, and a loop between the two is possible);
all ranks of a job have moved, and their queue pairs have drained, when its subscriber acknowledges;
a job that is not in the queue has no traffic that matters; one subscriber's messages are handled in
the order in which they were sent; and for lapsed leases that are dropped, a subscriber's clock is
not a third slower than ours.

Times are seconds of a clock that does not jump. Only `Tick` advances a run, so acknowledgements may
come from any thread, and one driver carries out all actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

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


@dataclass(frozen=True)
class LeaseRules:
    """Times in seconds. `lapsed_is_sheltered`: a subscriber whose lease has ended need not
    acknowledge UNPATH. `strikes`: number of updates that one job may prevent; all jobs of one user
    together may prevent three times as many, until `forgotten` seconds after the last."""

    lease: float = 30.0
    deadline: float = 15.0
    repeat: float = 0.5
    lapsed_is_sheltered: bool = False
    strikes: int = 3
    forgotten: float = 3600.0


@dataclass(frozen=True)
class Member:
    """A subscriber."""

    job: str
    uid: int | None
    """The user that subscribed it; None for a trusted user."""
    lease_until: float
    since: float
    """When it subscribed."""
    acked: bool = False
    """Whether it has acknowledged the current phase."""
    offset: int = 0
    """The LID offset that it reported."""


@dataclass(frozen=True)
class CoordinatorState:
    """The state of the coordinator. `update` is the number of the run, or of the last one."""

    phase: Phase = Phase.IDLE
    update: int = 0
    generation: int = 0
    """The generation that the run installs."""
    why: str = ""
    """Why the run was given up."""
    members: Mapping[str, Member] = field(default_factory=dict)
    deadline: float = inf
    """When the phase must end."""
    repeat_at: float = inf
    """When the notice is raised again."""
    ask_at: float = inf
    """When subscribers count as late."""
    strikes: Mapping[str, int] = field(default_factory=dict)
    """By job: the number of updates that it has prevented; not saved, nor are the fields below."""
    struck_users: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    """By uid: the number of updates that its jobs have prevented, and the time of the last."""
    empty_at: float | None = None
    """When the last reading of the queue began, if it showed no job."""

    def uncovered(self, job: str, uid: int | None, now: float, rules: LeaseRules) -> str:
        """Why updates no longer wait for subscribers of this job; empty if they do."""
        if (count := self.strikes.get(job, 0)) >= rules.strikes:
            return f"job {job} has prevented {count} updates"
        count, at = self.struck_users.get(-1 if uid is None else uid, (0, 0.0))
        if count >= 3 * rules.strikes and now - at < rules.forgotten:
            return f"jobs of uid {uid} have prevented {count} updates"
        return ""

    def refuses(self, request: Subscribe, now: float, rules: LeaseRules) -> str:
        """Why this subscriber gets no lease; empty if it gets one."""
        known = self.members.get(request.subscriber)
        job, uid = (known.job, known.uid) if known else (request.job, request.uid)
        return self.uncovered(job, uid, now, rules)

    @property
    def due(self) -> float:
        """When the next `Tick` has something to do, unless a subscriber acknowledges before."""
        return min(self.deadline, self.repeat_at, self.ask_at)

    def awaited(self, now: float, rules: LeaseRules) -> list[str]:
        """Subscribers whose acknowledgement of the phase is missing."""
        if self.phase not in (Phase.UNPATH, Phase.REPATH):
            return []
        drop = rules.lapsed_is_sheltered or self.phase is Phase.REPATH
        return [
            name
            for name, member in self.members.items()
            if not member.acked and not (drop and member.lease_until <= now)
        ]

    def lapsed(self, now: float, rules: LeaseRules) -> set[str]:
        """Subscribers of uncovered jobs whose lease has ended."""
        if not (self.strikes or self.struck_users):
            return set()
        return {
            name
            for name, member in self.members.items()
            if member.lease_until <= now and self.uncovered(member.job, member.uid, now, rules)
        }


def restarted(saved: CoordinatorState, now: float, rules: LeaseRules) -> CoordinatorState:
    """The state of a coordinator that starts with `saved` on disk. A run before its install is
    given up, since nothing has changed yet; during the install the tables are read back first."""
    lease = now + rules.lease
    members = {n: replace(m, lease_until=lease, acked=False) for n, m in saved.members.items()}
    state = replace(saved, members=members)
    if state.phase is Phase.UNPATH:
        return _back(state, now, "the agent was restarted before the install")
    if state.phase is Phase.REPATH:
        return _back(state, now, state.why)
    return state


def step(
    state: CoordinatorState, message: Message, now: float, rules: LeaseRules
) -> tuple[CoordinatorState, tuple[Action, ...]]:
    """The next state and the actions to carry out. Never raises; a message that does not fit the
    phase changes nothing."""
    match message:
        case Subscribe():
            return _subscribe(state, message, now, rules), ()
        case Acknowledge():
            return _acknowledge(state, message), ()
        case Unsubscribe():
            return _without(state, {message.subscriber}), ()
        case RunningJobs():
            return _drop_ended_jobs(state, message, now, rules), ()
        case BeginUpdate() if state.phase is Phase.IDLE:
            update = max(state.update + 1, message.at)
            state = _without(state, state.lapsed(now, rules))
            members = {n: replace(m, acked=False) for n, m in state.members.items()}
            begun = replace(
                state, update=update, generation=message.generation, why="", members=members
            )
            return _enter(begun, Phase.UNPATH, now), ()
        case TablesInstalled() if state.phase is Phase.INSTALL:
            return _back(state, now, message.why), ()
        case GiveUp() if state.phase is Phase.UNPATH:
            return _back(state, now, message.why), ()
        case Tick():
            return _tick(state, now, rules)
    return state, ()


def _subscribe(
    state: CoordinatorState, request: Subscribe, now: float, rules: LeaseRules
) -> CoordinatorState:
    known = state.members.get(request.subscriber)
    if state.refuses(request, now, rules):
        return state
    # A subscriber that has seen this run's REPATH and uses offset 0 has done all that it requires.
    back = state.phase is Phase.REPATH and (request.offset, request.update) == (0, state.update)
    member = Member(
        job=known.job if known else request.job,
        uid=known.uid if known else request.uid,
        lease_until=now + rules.lease,
        since=known.since if known else now,
        acked=back or bool(known and known.acked),
        offset=request.offset,
    )
    return replace(state, members={**state.members, request.subscriber: member})


def _acknowledge(state: CoordinatorState, message: Acknowledge) -> CoordinatorState:
    member = state.members.get(message.subscriber)
    if member is None or (message.phase, message.update) != (state.phase, state.update):
        return state
    offset = 1 if message.phase is Phase.UNPATH else 0
    acked = replace(member, acked=True, offset=offset)
    return replace(state, members={**state.members, message.subscriber: acked})


def _drop_ended_jobs(
    state: CoordinatorState, queue: RunningJobs, now: float, rules: LeaseRules
) -> CoordinatorState:
    """The state without the subscribers whose job has ended."""
    if not queue.jobs:
        first = state.empty_at
        if first is None or queue.at <= first:
            return replace(state, empty_at=queue.at)
        silent = now - rules.lease / 2
        gone = {
            name
            for name, member in state.members.items()
            if member.since < first and member.lease_until - rules.lease < silent
        }
        return _without(state, gone)
    strikes = {job: count for job, count in state.strikes.items() if job in queue.jobs}
    gone = _ended(state, queue) | state.lapsed(now, rules)
    return _without(replace(state, strikes=strikes, empty_at=None), gone)


def _ended(state: CoordinatorState, queue: RunningJobs) -> set[str]:
    """Subscribers whose job is not in the queue, though they subscribed before it was read; and
    those whose job is another user's, which was not known when they subscribed."""
    return {
        name
        for name, member in state.members.items()
        if (member.job not in queue.jobs and member.since < queue.at)
        or (member.uid is not None and queue.jobs.get(member.job) not in (None, member.uid))
    }


def _without(state: CoordinatorState, names: set[str]) -> CoordinatorState:
    if not names & state.members.keys():
        return state
    return replace(state, members={n: m for n, m in state.members.items() if n not in names})


def _tick(
    state: CoordinatorState, now: float, rules: LeaseRules
) -> tuple[CoordinatorState, tuple[Action, ...]]:
    state = _without(_with_deadline(state, now, rules), state.lapsed(now, rules))
    awaited = state.awaited(now, rules)
    if state.phase is Phase.UNPATH and not awaited:
        return _enter(state, Phase.INSTALL, now), (InstallTables(),)
    if state.phase is Phase.UNPATH and now >= state.deadline:
        jobs = sorted({state.members[name].job for name in awaited})
        listed = ", ".join(jobs[:5]) + (", …" if len(jobs) > 5 else "")
        why = (
            f"{len(awaited)} of {len(state.members)} subscribers did not leave LID offset 0 "
            f"within {rules.deadline:g} s (of jobs {listed})"
        )
        return _tick(_back(_strike(state, awaited, now, rules), now, why), now, rules)
    if state.phase is Phase.REPATH and (not awaited or now >= state.deadline):
        idle = replace(state, phase=Phase.IDLE, deadline=inf, repeat_at=inf, ask_at=inf)
        return idle, (RunEnded(state.why, tuple(awaited)),)
    actions: list[Action] = []
    if state.phase in (Phase.UNPATH, Phase.REPATH):
        if now >= state.repeat_at:
            actions.append(RaiseNotice(state.phase, state.update, state.generation))
            state = replace(state, repeat_at=now + rules.repeat)
        if now >= state.ask_at:
            actions.append(AskQueue())
            state = replace(state, ask_at=now + rules.deadline / 4)
    return state, tuple(actions)


def _strike(
    state: CoordinatorState, late: Iterable[str], now: float, rules: LeaseRules
) -> CoordinatorState:
    """Counts the update that these late subscribers have prevented."""
    jobs = {(state.members[name].job, state.members[name].uid) for name in late}
    strikes, users = dict(state.strikes), dict(state.struck_users)
    for job in {job for job, _ in jobs}:
        strikes[job] = strikes.get(job, 0) + 1
    for uid in {uid for _, uid in jobs if uid is not None}:
        count, at = users.get(uid, (0, now))
        users[uid] = (count if now - at < rules.forgotten else 0) + 1, now
    return replace(state, strikes=strikes, struck_users=users)


def _back(state: CoordinatorState, now: float, why: str) -> CoordinatorState:
    """Enters REPATH, after an install or instead of one. Waiting for all subscribers would make
    nothing safer, so the phase lasts a third of the deadline at most; late subscribers learn of it
    with their next message."""
    members = {n: replace(m, acked=False) for n, m in state.members.items()}
    return _enter(replace(state, why=why, members=members), Phase.REPATH, now)


def _enter(state: CoordinatorState, phase: Phase, now: float) -> CoordinatorState:
    """Enters a phase. Its deadline counts from the first notice, so the first `Tick` sets it."""
    return replace(state, phase=phase, deadline=inf, repeat_at=now, ask_at=inf)


def _with_deadline(state: CoordinatorState, now: float, rules: LeaseRules) -> CoordinatorState:
    if state.deadline < inf or state.phase not in (Phase.UNPATH, Phase.REPATH):
        return state
    if state.phase is Phase.REPATH:
        return replace(state, deadline=now + rules.deadline / 3)
    return replace(state, deadline=now + rules.deadline, ask_at=now + rules.deadline / 2)
