"""Hours of a recorded history: how spread out jobs were, and what a failure would have cost.

Moments are half past each hour of the record. Jobs are as spread out as they have more leaf
switches than their nodes and those that no job uses would need. What is pulled costs the jobs
whose nodes lose their switch, and those with routes over it by one set of tables: that of `routes`,
also where the site had others. Hours are those that Slurm printed, which are local; where the
record has seconds since 1970, they are those of the reader's time zone (TZ).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.reports.places import Places
from sar_agent.reports.spread import fewest_switches
from sar_agent.reports.what_if import without
from sar_agent.routing.routes import Routes
from sar_agent.util.plural import plural
from sar_lab.history.placed_history import PlacedHistory

HOUR = 3600.0
MOST_MOMENTS = 24 * 366


@dataclass(frozen=True)
class HourOfDay:
    """Means over the days of the record."""

    hour: int
    moments: int
    jobs: float
    """Running on several leaf switches."""
    spread: float
    """Jobs on more leaf switches than needed."""
    extra: float
    """Leaf switches too many, of all jobs."""
    lost_nodes: float
    """Nodes of jobs that lose their last port."""
    hit: float
    """Jobs with routes over what is pulled."""

    def cells(self, pulled: bool) -> list[str]:
        """A row of a table."""
        cells = [f"{self.hour:02d}", str(self.moments), f"{self.jobs:.1f}"]
        cells += [f"{self.spread:.1f}", f"{self.extra:.1f}"]
        return cells + ([f"{self.lost_nodes:.1f}", f"{self.hit:.1f}"] if pulled else [])


def by_hour(placed: PlacedHistory, routes: Routes, pulled: Places | None) -> list[HourOfDay]:
    """A row for each hour of the day that the record has. Raises `InputError` for a record of less
    than an hour, or of more than a year (a part of it must be given)."""
    begin, end = placed.history.bulk
    moments = np.arange((begin // HOUR) * HOUR + HOUR / 2, end, HOUR)
    moments = moments[moments >= begin]
    if not 0 < len(moments) <= MOST_MOMENTS:
        raise InputError(
            f"{placed.history.name} has {plural(len(moments), 'hour')}",
            remedy=f"give 1 to {MOST_MOMENTS} hours with --from and --until",
        )
    after = None if pulled is None else without(placed.fabric, pulled)
    rows: dict[int, list[tuple[float, ...]]] = {}
    for moment in moments.tolist():
        row = _at(placed, moment, routes, after)
        rows.setdefault(placed.history.clock(moment).hour, []).append(row)
    return [
        HourOfDay(hour, len(of), *np.mean(of, axis=0).tolist()) for hour, of in sorted(rows.items())
    ]


def hours_json(hours: list[HourOfDay]) -> list[dict[str, Any]]:
    """For `--json`."""
    return [asdict(hour) for hour in hours]


def _at(
    placed: PlacedHistory, moment: float, routes: Routes, after: Fabric | None
) -> tuple[float, ...]:
    """jobs, spread, extra, lost nodes, hit: as in `HourOfDay`."""
    fabric, history = placed.fabric, placed.history
    running = history.running(moment)
    leaf = _leaf_of_hosts(placed)
    used = np.concatenate([np.empty(0, np.int32), *(history.hosts_of(j) for j in running)])
    free = np.bincount(np.delete(leaf, np.unique(used)) + 1, minlength=fabric.switches + 1)[1:]
    spread, extra = 0, 0
    for j in running.tolist():
        own = np.bincount(leaf[history.hosts_of(j)] + 1, minlength=fabric.switches + 1)[1:]
        more = int((own > 0).sum()) - fewest_switches(int(own.sum()), own + free)
        spread, extra = spread + (more > 0), extra + max(0, more)
    mix, lost, hit = placed.mix_of(running), 0, 0
    if after is not None:
        lost, hit = _cost(placed, mix, used, routes, after)
    return len(mix.whole_jobs), spread, extra, lost, hit


def _leaf_of_hosts(placed: PlacedHistory) -> I32:
    """int32[H]: the leaf switch of each host of the history, -1 for hosts of other fabrics."""
    ports = (placed.fabric.job_ports.get(host) for host in placed.history.hosts)
    return np.array(
        [placed.fabric.terminal_switch[each[0]] if each else -1 for each in ports], np.int32
    )


def _cost(
    placed: PlacedHistory, mix: JobMix, used: I32, routes: Routes, after: Fabric
) -> tuple[int, int]:
    """Nodes of jobs without a port, and jobs with routes over what is pulled."""
    fabric, lost = placed.fabric, 0
    for host in {placed.history.hosts[h] for h in used.tolist()}:
        ports = list(fabric.job_ports.get(host, ()))
        lost += bool(ports) and not after.terminal_up[ports].any()
    gone = fabric.channel_up & ~after.channel_up
    lists = traffic_of(fabric, mix, routes).lists
    job = np.repeat(mix.whole_of, np.diff(lists.offset))
    return lost, len(np.unique(job[gone[lists.channel[: lists.offset[-1]]]]))
