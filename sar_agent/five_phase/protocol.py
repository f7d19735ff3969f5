"""The coordinator as a function: state, message, time → state, actions.

What must hold: tables of offset 0 never change (INSTALL) while somebody who has subscribed, and was
not dropped, uses offset 0. So a run waits in UNPATH until each of them has acknowledged *this*
update; who comes later is told the phase and starts on offset 1. Whoever does not answer in time
makes the run end without an install, unless its job is over. Messages may be lost, late or
doubled: an acknowledgement counts for its own update and phase only, and both only ever rise.

A lease is counted here from when its request arrived and by the subscriber from when it was sent,
so it ends there first; and the subscriber leaves offset 0 a third of it before. Leases are not
saved: who restarts gives everybody a new one, which ends after any that was given before.

An empty queue drops nobody at the first look, since Slurm may have been asked without the right to
see jobs; at the next one that is empty, too, whoever has not renewed its lease meanwhile is over.

Times are seconds of one clock that does not jump. Only `Tick` moves a run on, so acknowledgements
may come in any thread, and one driver has all the actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from sar_agent.five_phase.messages import (
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
    """Seconds. `lapsed_is_sheltered`: who let its lease lapse need not acknowledge UNPATH.
    `strikes`: updates that one job may keep from happening; all jobs of one user three times as
    many, and no more until `forgotten` seconds after the last."""

    lease: float = 30.0
    deadline: float = 15.0
    repeat: float = 0.5
    lapsed_is_sheltered: bool = False
    strikes: int = 3
    forgotten: float = 3600.0


@dataclass(frozen=True)
class Member:
    """One that has subscribed."""

    job: str
    uid: int | None
    """Who spoke for it; None for those who may speak for all."""
    lease_until: float
    since: float
    """When it came."""
    acked: bool = False
    """The phase that is under way."""
    offset: int = 0
    """That it said it uses."""


@dataclass(frozen=True)
class CoordinatorState:
    """All that the coordinator knows. `update` is that of the run, or of the last one."""

    phase: Phase = Phase.IDLE
    update: int = 0
    generation: int = 0
    """That the run installs."""
    why: str = ""
    """Why the run was given up."""
    members: Mapping[str, Member] = field(default_factory=dict)
    deadline: float = inf
    """Of the phase."""
    repeat_at: float = inf
    """When the notice is raised again."""
    ask_at: float = inf
    """When somebody counts as late."""
    strikes: Mapping[str, int] = field(default_factory=dict)
    """By job: the updates that it has kept from happening; not saved, as those below."""
    struck_users: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    """By uid: the same of all its jobs, and when it was for the last time."""
    empty_at: float | None = None
    """When the last look at the queue began, where that showed no job."""

    def uncovered(self, job: str, uid: int | None, now: float, rules: LeaseRules) -> str:
        """Why subscribers of this job are not waited for any more; empty where they are."""
        if (count := self.strikes.get(job, 0)) >= rules.strikes:
            return f"job {job} has kept {count} updates from happening"
        count, at = self.struck_users.get(-1 if uid is None else uid, (0, 0.0))
        if count >= 3 * rules.strikes and now - at < rules.forgotten:
            return f"jobs of uid {uid} have kept {count} updates from happening"
        return ""

    def refuses(self, said: Subscribe, now: float, rules: LeaseRules) -> str:
        """Why this subscriber gets no lease; empty where it gets one."""
        known = self.members.get(said.subscriber)
        job, uid = (known.job, known.uid) if known else (said.job, said.uid)
        return self.uncovered(job, uid, now, rules)

    @property
    def due(self) -> float:
        """When the next `Tick` has something to do, unless somebody acknowledges before."""
        return min(self.deadline, self.repeat_at, self.ask_at)

    def awaited(self, now: float, rules: LeaseRules) -> list[str]:
        """Whose acknowledgement of the phase is missing."""
        if self.phase not in (Phase.UNPATH, Phase.REPATH):
            return []
        drop = rules.lapsed_is_sheltered or self.phase is Phase.REPATH
        return [
            name
            for name, one in self.members.items()
            if not one.acked and not (drop and one.lease_until <= now)
        ]

    def lapsed(self, now: float, rules: LeaseRules) -> set[str]:
        """Subscribers of uncovered jobs whose lease is over."""
        if not (self.strikes or self.struck_users):
            return set()
        return {
            name
            for name, one in self.members.items()
            if one.lease_until <= now and self.uncovered(one.job, one.uid, now, rules)
        }


def restarted(saved: CoordinatorState, now: float, rules: LeaseRules) -> CoordinatorState:
    """A coordinator that finds `saved` on the disk. Before an install nothing has changed: that run
    is given up. During one the tables must be read back first."""
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
    """Never raises; what does not fit the phase changes nothing."""
    match message:
        case Subscribe():
            return _subscribe(state, message, now, rules), ()
        case Acknowledge():
            return _ack(state, message), ()
        case Unsubscribe():
            return _without(state, {message.subscriber}), ()
        case RunningJobs():
            return _look(state, message, now, rules), ()
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
    state: CoordinatorState, said: Subscribe, now: float, rules: LeaseRules
) -> CoordinatorState:
    known = state.members.get(said.subscriber)
    if state.refuses(said, now, rules):
        return state
    # Whoever has seen this run's REPATH and is on offset 0 has done all that it asks for.
    back = state.phase is Phase.REPATH and (said.offset, said.update) == (0, state.update)
    member = Member(
        job=known.job if known else said.job,
        uid=known.uid if known else said.uid,
        lease_until=now + rules.lease,
        since=known.since if known else now,
        acked=back or bool(known and known.acked),
        offset=said.offset,
    )
    return replace(state, members={**state.members, said.subscriber: member})


def _ack(state: CoordinatorState, said: Acknowledge) -> CoordinatorState:
    member = state.members.get(said.subscriber)
    if member is None or (said.phase, said.update) != (state.phase, state.update):
        return state
    offset = 1 if said.phase is Phase.UNPATH else 0
    acked = replace(member, acked=True, offset=offset)
    return replace(state, members={**state.members, said.subscriber: acked})


def _look(
    state: CoordinatorState, queue: RunningJobs, now: float, rules: LeaseRules
) -> CoordinatorState:
    """Without those whose job is over."""
    if not queue.jobs:
        first = state.empty_at
        if first is None or queue.at <= first:
            return replace(state, empty_at=queue.at)
        silent = now - rules.lease / 2
        gone = {
            name
            for name, one in state.members.items()
            if one.since < first and one.lease_until - rules.lease < silent
        }
        return _without(state, gone)
    strikes = {job: count for job, count in state.strikes.items() if job in queue.jobs}
    gone = _over(state, queue) | state.lapsed(now, rules)
    return _without(replace(state, strikes=strikes, empty_at=None), gone)


def _over(state: CoordinatorState, queue: RunningJobs) -> set[str]:
    """Those whose job is not in the queue, though they came before it was looked at, or is
    somebody else's: nobody knew that when they came."""
    return {
        name
        for name, one in state.members.items()
        if (one.job not in queue.jobs and one.since < queue.at)
        or (one.uid is not None and queue.jobs.get(one.job) not in (None, one.uid))
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
        shown = ", ".join(jobs[:5]) + (", …" if len(jobs) > 5 else "")
        why = (
            f"{len(awaited)} of {len(state.members)} subscribers did not leave LID offset 0 "
            f"within {rules.deadline:g} s (of jobs {shown})"
        )
        return _tick(_back(_strike(state, awaited, now, rules), now, why), now, rules)
    if state.phase is Phase.REPATH and (not awaited or now >= state.deadline):
        over = replace(state, phase=Phase.IDLE, deadline=inf, repeat_at=inf, ask_at=inf)
        return over, (RunEnded(state.why, tuple(awaited)),)
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
    """The update does not happen because of these."""
    jobs = {(state.members[name].job, state.members[name].uid) for name in late}
    strikes, users = dict(state.strikes), dict(state.struck_users)
    for job in {job for job, _ in jobs}:
        strikes[job] = strikes.get(job, 0) + 1
    for uid in {uid for _, uid in jobs if uid is not None}:
        count, at = users.get(uid, (0, now))
        users[uid] = (count if now - at < rules.forgotten else 0) + 1, now
    return replace(state, strikes=strikes, struck_users=users)


def _back(state: CoordinatorState, now: float, why: str) -> CoordinatorState:
    """REPATH: after an install, or instead of one. Waiting for all of them makes nothing safer, so
    it is a third of the deadline; the door tells the late."""
    members = {n: replace(m, acked=False) for n, m in state.members.items()}
    return _enter(replace(state, why=why, members=members), Phase.REPATH, now)


def _enter(state: CoordinatorState, phase: Phase, now: float) -> CoordinatorState:
    """Its deadline is set when it is first looked at: it counts from the first notice."""
    return replace(state, phase=phase, deadline=inf, repeat_at=now, ask_at=inf)


def _with_deadline(state: CoordinatorState, now: float, rules: LeaseRules) -> CoordinatorState:
    if state.deadline < inf or state.phase not in (Phase.UNPATH, Phase.REPATH):
        return state
    if state.phase is Phase.REPATH:
        return replace(state, deadline=now + rules.deadline / 3)
    return replace(state, deadline=now + rules.deadline, ask_at=now + rules.deadline / 2)
