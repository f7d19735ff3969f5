"""Is it time for other routes, and why? A pure function of what is known and what is observed.

After sar-2016, Section 3.2.1: the queue's multi-switch jobs are compared, ids ignored, with those
that the routes in force were made for (not with the last observation: a reroute that failed must
be tried again). Ended jobs count; young ones do not trigger. Besides jobs, the fabric counts, and
whether the subnet manager really uses the routes that it was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sar_agent.agent.state import SavedHold, State
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.jobs.filter import JobChange, Running, job_change
from sar_agent.jobs.record import JobRecord


class Reason(StrEnum):
    """Why routes are to change; the values are labels of a metric."""

    FIRST = "first"
    FALLBACK = "fallback_engine_in_force"
    GENERATION = "other_generation_in_force"
    FABRIC = "fabric_changed"
    ENGINE = "engine_configured"
    JOBS = "jobs_changed"
    TOPOLOGY = "topology_edited"
    ROLLBACK = "rollback"
    SHELTER = "shelter_of_another_fabric"
    AMENDED = "amended"
    """The subnet manager has repaired the plan in force by itself."""


REPAIRS = frozenset({Reason.FIRST, Reason.FALLBACK, Reason.GENERATION, Reason.FABRIC})
"""Reasons for which traffic is without the routes that it should have: they never wait."""


MOST_NAMED = 3
"""Hosts in a sentence."""


@dataclass(frozen=True)
class ObservedState:
    """The site as it is now. `records` are the multi-switch jobs, without the hosts that are
    `missing` from the fabric, `running` all jobs with all hosts; `now`, `min_age` in seconds."""

    records: tuple[JobRecord, ...]
    fabric_digest: bytes
    engine: str
    now: float = 0.0
    min_age: float = 0.0
    topology_edited: bool = False
    by_rail: bool = False
    """Whether each rail of a job is planned for by itself."""
    status: SmStatus | None = None
    """None where nothing is to be installed, so that the subnet manager gives no reason."""
    running: tuple[JobRecord, ...] = ()
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Decision:
    """`reason` is None where there is nothing to do; `why` is a sentence either way."""

    reason: Reason | None
    why: str
    held: bool = False


def decide(made: State | None, observed: ObservedState, hold: SavedHold | None = None) -> Decision:
    """The first reason that applies. `made` is of the last routes, installed or planned. Reasons
    for which our routes are not in force come first and end a hold, because the routes that were
    held are not in force any more."""
    if made is None:
        return Decision(Reason.FIRST, "no routes were made yet")
    status = observed.status
    if status and not status.ours:
        why = f": {status.last_error}" if status.last_error else ""
        return Decision(Reason.FALLBACK, f"engine {status.engine} is in force{why}")
    if status and status.identity != made.identity:
        what = f"generation {status.generation} is in force, not {made.generation}"
        if status.generation == made.generation != 0:
            what = f"generation {status.generation} is in force, but with other entries"
        return Decision(Reason.GENERATION, what)
    decision = _change(made, observed)
    if decision.reason and hold and hold.active(observed.now):
        until = (
            "`sar-agent resume`"
            if hold.over_at is None
            else f"{hold.over_at - observed.now:.0f} s are over"
        )
        return Decision(None, f"held until {until}, although {decision.why}", held=True)
    return decision


def install_obstacle(observing: bool, status: SmStatus | None, problem: str, manager: str) -> str:
    """Why nothing can be installed now; empty where it can. `problem` says why there is no status,
    `manager` is the subnet manager's name."""
    if observing:
        return "observing"
    if status is None:
        return problem
    if status.role != "master":
        return f"this {manager} is not the master but {status.role}"
    if status.engine == "none":
        return f"{manager} has just started and has not routed yet"
    return ""


def _change(made: State, observed: ObservedState) -> Decision:
    if observed.fabric_digest.hex() != made.fabric_digest:
        return Decision(Reason.FABRIC, "the fabric has changed since the routes were made")
    if observed.engine != made.engine:
        return Decision(
            Reason.ENGINE, f"engine {observed.engine} is configured, {made.engine} was used"
        )
    running = Running(observed.running, observed.missing, made.installed_at)
    change = job_change(made.jobs, observed.records, observed.now, observed.min_age, running)
    if change:
        why = _changed(change)
        if made.hold and not made.hold.active(observed.now) and not made.jobs:
            why = f"the hold is over, and {_jobs(len(observed.records))} run"
        if observed.topology_edited:
            return Decision(Reason.TOPOLOGY, f"topology.conf was edited: {why}")
        return Decision(Reason.JOBS, why)
    if observed.by_rail != made.by_rail and made.jobs:
        how = "by rails" if observed.by_rail else "with all their ports together"
        return Decision(Reason.JOBS, f"jobs are planned for {how} from now on")
    return Decision(None, f"the same {_jobs(len(made.jobs))} on the same fabric")


def _jobs(count: int) -> str:
    return f"{count} multi-switch job" + "s" * (count != 1)


def _changed(change: JobChange) -> str:
    said = []
    if change.started or change.ended or not (change.moved or change.late):
        said.append(f"{_jobs(len(change.started))} started, {len(change.ended)} ended")
    of = f"of {_jobs(change.moved)}" if change.moved else ""
    if change.lost:
        said.append(f"{_hosts(change.lost)} {of} left the fabric")
    if change.back:
        said.append(f"{_hosts(change.back)} {of} came back to the fabric")
    if change.late:
        verb = "counts" if change.late == 1 else "count"
        said.append(f"{_jobs(change.late)} that ran already {verb} from now on")
    return "; ".join(said)


def _hosts(hosts: frozenset[str]) -> str:
    """Their number, and the names of the first."""
    names = sorted(hosts)
    more = ", …" if len(names) > MOST_NAMED else ""
    return (
        f"{len(names)} host" + "s" * (len(names) != 1) + f" ({', '.join(names[:MOST_NAMED])}{more})"
    )
