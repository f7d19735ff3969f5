"""The explain command for a job that has ended: what the agent remembers of it, day by day."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from sar_agent.agent.job_days import KEPT_DAYS, JobDay, JobDays, Tables
from sar_agent.config.model import Config
from sar_agent.errors import InputError
from sar_agent.jobs.find_job import job_names
from sar_agent.util.plural import plural

UNHINDERED_RATIO = 1.01
"""Times as long as alone, up to which a job did not wait for links."""


@dataclass(frozen=True)
class EndedJob:
    """A job that does not run any more; one run of it, the last that was seen."""

    job: str
    days: tuple[JobDay, ...]
    """At least one, the oldest first."""
    users: Mapping[str, str]
    """Users of the jobs that shared its links, by job; empty where they are not to be named."""

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        days = []
        for row in self.days:
            times = {tables: row.mean(tables) for tables in row.sums}
            told = {"date": date.fromordinal(row.day).isoformat(), "times": times}
            days.append({k: v for k, v in asdict(row).items() if k not in ("day", "sums")} | told)
        return {"job": self.job, "ended": True, "days": days, "users": dict(self.users)}

    def words(self) -> str:
        """For people."""
        first, last = self.days[0], self.days[-1]
        watched = sum(row.seconds for row in self.days)
        lines = [
            f"job {self.job}{f' of {last.user}' if last.user else ''} has ended: "
            f"{plural(last.hosts, 'host')} on "
            f"{plural(last.leaf_count, 'leaf switch', 'leaf switches')}, watched for "
            f"{_duration(watched)} from {_clock(first.first)} to {_clock(last.last)}",
            "  "
            + ", ".join(f'"{leaf}": {hosts}' for leaf, hosts in last.leaves.items())
            + _more(last.leaf_count - len(last.leaves)),
        ]
        if last.leaf_count < 2:
            return "\n".join([*lines, "it stayed on one leaf switch, so no link was shared"])
        for row in self.days:
            lines += self._day(row)
        means = [times for row in self.days if (times := row.mean("in_force"))]
        if means and max(map(max, means)) < UNHINDERED_RATIO:
            lines.append("as far as routes go, no other job can have slowed it")
        lines.append(
            "times: how many times as long as alone its messages take while all jobs send as much "
            "as they can; predicted, not measured"
        )
        return "\n".join(lines)

    def _day(self, row: JobDay) -> list[str]:
        lines = []
        names: dict[Tables, str] = {
            "in_force": "in force (sar-agent's)" if row.ours else "in force",
            "planned": "planned",
            "baseline": f"baseline ({row.baseline})",
        }
        for tables, name in names.items():
            if (times := row.mean(tables)) and not (row.ours and tables == "planned"):
                lines.append(
                    f"  {name}: all messages at once {times[0]:.2f} times, one at a time "
                    f"{times[1]:.2f} times"
                )
        if row.worst_load is not None:
            lines.append(
                f"  worst link {row.worst_link}: load {row.worst_load:.2f} at "
                f"{time.strftime('%H:%M', time.localtime(row.worst_at))}; "
                + (f"shared with {self._others(row)}" if row.shared else "no other job used it")
            )
        return [f"{date.fromordinal(row.day)}:", *(lines or ["  nothing is known of its links"])]

    def _others(self, row: JobDay) -> str:
        named = [f"{j} ({user})" if (user := self.users.get(j)) else j for j in row.shared]
        more = row.shared_count - len(named)
        return f"job{'s' * (row.shared_count > 1)} {', '.join(named)}{_more(more)}"


def ended_job(config: Config, wanted: str) -> EndedJob:
    """Raises `InputError` for a job that the history does not have, `SarError` where that cannot be
    read."""
    table = JobDays(config.agent.state_dir)
    found = ((name, table.of_job(name)) for name in job_names(wanted))
    name, rows = next(((name, rows) for name, rows in found if rows), ("", []))
    if not rows:
        raise InputError(
            f"no job {wanted} is running, and the history does not have it",
            remedy=f"it has jobs of several hosts of the last {KEPT_DAYS} days; `sar-agent "
            "explain` takes a job's number as squeue prints it",
        )
    run = [row for row in rows if row.start == rows[-1].start]
    users = _users(table, run) if config.agent.explain_names_users else {}
    return EndedJob(name, tuple(run), users)


def _users(table: JobDays, rows: Sequence[JobDay]) -> dict[str, str]:
    shared = dict.fromkeys(job for row in rows for job in row.shared)
    found = {job: table.of_job(job) for job in shared}
    return {job: rows[-1].user for job, rows in found.items() if rows and rows[-1].user}


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
