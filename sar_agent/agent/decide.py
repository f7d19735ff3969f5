"""Is it time for other routes, and why? A pure function of what is known and what is seen.

After sar-2016, Section 3.2.1: the queue's multi-switch jobs are compared, ids ignored, with those
that the routes in force were made for (not with the last look: a reroute that failed must be
tried again). Ended jobs count; young ones do not trigger. Around that: the fabric, and whether
OpenSM really uses what we gave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sar_agent.jobs.filter import HostSets, host_sets, job_change
from sar_agent.jobs.record import JobRecord
from sar_agent.opensm.plugin_client import PluginStatus

OUR_ENGINE = "sar"
"""Our plugin's name among OpenSM's routing engines, whatever engine of ours made the file."""


class Reason(StrEnum):
    """Why there is to be a reroute; the values are labels of a metric."""

    FIRST = "first"
    FALLBACK = "fallback_engine_in_force"
    GENERATION = "other_generation_in_force"
    FABRIC = "fabric_changed"
    ENGINE = "engine_configured"
    JOBS = "jobs_changed"
    TOPOLOGY = "topology_edited"
    ROLLBACK = "rollback"
    BETTER = "better_routes_found"
    SHELTER = "shelter_of_another_fabric"


MENDS = frozenset({Reason.FIRST, Reason.FALLBACK, Reason.GENERATION, Reason.FABRIC})
"""Reasons that leave traffic without the routes that it should have."""


@dataclass(frozen=True)
class RoutesBasis:
    """What the last routes, installed or planned, were made for."""

    generation: int
    jobs: HostSets
    fabric_digest: bytes
    engine: str


@dataclass(frozen=True)
class ObservedState:
    """The world as it is now. `records` are the multi-switch jobs; `now`, `min_age` in seconds."""

    records: tuple[JobRecord, ...]
    fabric_digest: bytes
    engine: str
    now: float = 0.0
    min_age: float = 0.0
    topology_edited: bool = False
    status: PluginStatus | None = None
    """None where nothing is to be installed, so that what OpenSM does is no reason."""


@dataclass(frozen=True)
class Hold:
    """A person's wish to keep the routes: until `until` (Unix seconds), or until the jobs are
    others than `jobs` where there is no time."""

    jobs: HostSets
    until: float | None = None

    def active(self, records: tuple[JobRecord, ...], now: float) -> bool:
        """Whether it still holds."""
        return host_sets(records) == self.jobs if self.until is None else now < self.until


@dataclass(frozen=True)
class Decision:
    """`reason` is None where nothing is to be done; `why` is a sentence either way."""

    reason: Reason | None
    why: str
    held: bool = False


def decide(made: RoutesBasis | None, seen: ObservedState, hold: Hold | None = None) -> Decision:
    """The first reason that applies; those that leave OpenSM without our routes come first and
    end a hold, because what was held is not in force any more."""
    if made is None:
        return Decision(Reason.FIRST, "no routes were made yet")
    status = seen.status
    if status and status.engine_in_force != OUR_ENGINE:
        why = f": {status.last_error}" if status.last_error else ""
        return Decision(Reason.FALLBACK, f"engine {status.engine_in_force} is in force{why}")
    if status and status.generation_in_force != made.generation:
        return Decision(
            Reason.GENERATION,
            f"generation {status.generation_in_force} is in force, not {made.generation}",
        )
    decision = _change(made, seen)
    if decision.reason and hold and hold.active(seen.records, seen.now):
        until = (
            "the jobs change" if hold.until is None else f"{hold.until - seen.now:.0f} s are over"
        )
        return Decision(None, f"held until {until}, although {decision.why}", held=True)
    return decision


def _change(made: RoutesBasis, seen: ObservedState) -> Decision:
    if seen.fabric_digest != made.fabric_digest:
        return Decision(Reason.FABRIC, "the fabric is another than the routes were made for")
    if seen.engine != made.engine:
        return Decision(
            Reason.ENGINE, f"engine {seen.engine} is configured, {made.engine} was used"
        )
    change = job_change(made.jobs, seen.records, seen.now, seen.min_age)
    if change:
        why = f"{_jobs(len(change.started))} started, {len(change.ended)} ended"
        if seen.topology_edited:
            return Decision(Reason.TOPOLOGY, f"topology.conf was edited: {why}")
        return Decision(Reason.JOBS, why)
    return Decision(None, f"the same {_jobs(len(made.jobs))} on the same fabric")


def _jobs(count: int) -> str:
    return f"{count} multi-switch job" + "s" * (count != 1)
