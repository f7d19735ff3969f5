"""Links by name: the jobs on them, what is predicted, what was counted, and errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.counters.lost_bandwidth import lost_of
from sar_agent.counters.port_errors import words as error_words
from sar_agent.fabric.cable_names import cable_name, host_cable_name
from sar_agent.jobs.find_job import require_job
from sar_agent.reports.places import Places
from sar_agent.reports.site_dumps import JobOnLink, SiteDumps
from sar_agent.reports.wording import job_words, moment

JOBS_SHOWN = 10


@dataclass(frozen=True)
class Direction:
    """One direction of a cable."""

    name: str
    load: float | None
    """Predicted, 1.0 is its speed while all jobs send at once; None for the cable of a host."""
    counted: float | None
    """The share of its speed that it carried in the window; None where not known."""
    waits_per_second: float | None
    """Ticks in which the port had to wait (PortXmitWait); None where not known."""
    errors: Mapping[str, int]
    """Counts above 0 of the port at its begin."""
    jobs: tuple[JobOnLink, ...]
    lost_gbits: float | None = None
    """Gbit/s that it lost by waiting (`counters/lost_bandwidth.py`); None where not known."""
    rings: tuple[str, ...] = ()
    """Messages of rings that meet here, `n003 → n004 (job 4711)`; empty where fewer than two."""


@dataclass(frozen=True)
class Link:
    """A cable and both of its directions, or the cable of a host."""

    name: str
    speed: str
    up: bool
    directions: tuple[Direction, ...]

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def words(self) -> str:
        """For people."""
        lines = [f"{self.name}: {self.speed}" + ("" if self.up else ", down")]
        for way in self.directions:
            lines.append(f"  {way.name}: " + (known_words(way) or "nothing known"))
            if way.rings:
                lines.append(f"    ring messages meet: {', '.join(way.rings[:JOBS_SHOWN])}")
            lines += [f"    {_job(job)}" for job in way.jobs[:JOBS_SHOWN]]
            if not way.jobs:
                lines.append("    no job")
            if (more := len(way.jobs) - JOBS_SHOWN) > 0:
                lines.append(f"    and {more} more jobs")
        return "\n".join(lines)


def known_words(way: Direction) -> str:
    """What is predicted and was counted, in words; empty where nothing is known."""
    parts = [] if way.load is None else [f"predicted load {way.load:.2f}"]
    if way.counted is not None:
        parts.append(f"carried {way.counted:.1%} of its speed")
    if way.waits_per_second:
        lost = f" (lost {way.lost_gbits:.1f} Gbit/s)" if way.lost_gbits else ""
        parts.append(f"waited {way.waits_per_second:.0f} ticks a second{lost}")
    if way.errors:
        parts.append(error_words(way.errors))
    return ", ".join(parts)


def links(dumps: SiteDumps, places: Places) -> tuple[Link, ...]:
    """A `Link` for each cable, those of switches first."""
    fabric, found, seen = dumps.fabric, [], set[int]()
    for c in places.channels:
        back = int(fabric.channel_reverse[c])
        if back not in seen:
            seen.add(c)
            speed = fabric.channel_speed(c)
            ways = (direction_of(dumps, c), direction_of(dumps, back))
            found.append(Link(cable_name(fabric, c), speed, bool(fabric.channel_up[c]), ways))
    for t in places.terminals:
        ways = host_direction(dumps, t, into=True), host_direction(dumps, t, into=False)
        speed = fabric.terminal_speed(t)
        found.append(Link(host_cable_name(fabric, t), speed, bool(fabric.terminal_up[t]), ways))
    return tuple(found)


def links_of_job(dumps: SiteDumps, job: str) -> list[int]:
    """The channels that a job uses, the fullest first; none where it is on one switch. Raises
    `InputError` where no such job runs."""
    found = require_job(dumps.records, job)
    used = dumps.traffic.links_of(dumps.mix.parts_of(found.id)).tolist()
    return sorted(used, key=lambda c: (-dumps.traffic.load[c], c))


def line_of_job(dumps: SiteDumps, job: str) -> str:
    """One sentence for the job's user, without names of others."""
    used = links_of_job(dumps, job)
    if not used:
        return f"job {job} runs within one switch and shares no link"
    others = len(dumps.jobs_over(used[0])) - 1
    return (
        f"job {job} shares its busiest link with {others or 'no'} other job{'s' * (others != 1)} "
        f"(predicted load {dumps.traffic.load[used[0]]:.2f})"
    )


def host_direction(dumps: SiteDumps, t: int, *, into: bool) -> Direction:
    """The cable of a host: from it `into` the fabric, or to it."""
    own, switch = dumps.terminal_errors(t)
    share = float(dumps.window.terminal_share[t]) if dumps.window else np.nan
    host, jobs = dumps.fabric.terminal_host[t], dumps.jobs_on(t)
    if into:
        return Direction(f"from {host}", None, None if np.isnan(share) else share, None, own, jobs)
    return Direction(f"to {host}", None, None, None, switch, jobs)


def direction_of(dumps: SiteDumps, c: int) -> Direction:
    """One direction of a cable between switches."""
    window, counted, waits, lost = dumps.window, None, None, None
    if window is not None and window.known[c]:
        counted = float(window.share[c])
        if not np.isnan(window.waits[c]):
            waits = float(window.waits[c])
            lost = float(lost_of(dumps.fabric, window)[c])
    return Direction(
        dumps.fabric.channel_name(c),
        float(dumps.traffic.load[c]),
        counted,
        waits,
        dumps.channel_errors(c),
        dumps.jobs_over(c),
        lost,
        dumps.rings_on(c),
    )


def _job(job: JobOnLink) -> str:
    routes = f": {job.routes} route{'s' * (job.routes != 1)}" if job.routes else ""
    since = "" if job.start is None else f", since {moment(job.start)}"
    return job_words(job.job, job.user) + routes + since
