"""The way of packets from one host to another: each cable with its load, errors, waits and jobs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sar_agent.demand.rails import rails_of
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs.find_job import require_job
from sar_agent.reports.link import Direction, direction_of, host_direction, known_words
from sar_agent.reports.places import PlaceNames
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.wording import some

JOBS_SHOWN, PATHS_SHOWN = 5, 16


@dataclass(frozen=True)
class Path:
    """The way from one port to another."""

    begin: str
    """`n001 mlx5_0`."""
    end: str
    rail: int | None
    """None where ports send to all ports."""
    cables: tuple[Direction, ...]
    """In the order in which packets pass them."""
    problem: str = ""
    """Why they do not arrive; empty where they do."""

    def words(self, job: str = "") -> str:
        """For people; jobs other than `job` are those that it meets."""
        rail = "" if self.rail is None else f" (rail {self.rail})"
        lines = [
            f"{self.begin} -> {self.end}{rail}" + (f": {self.problem}" if self.problem else "")
        ]
        for way in self.cables:
            others = [j.job for j in way.jobs if j.job != job]
            other = "other " if len(others) < len(way.jobs) else ""
            jobs = f"{other}jobs {some(others, JOBS_SHOWN)}" if others else f"no {other}job"
            lines.append(f"  {way.name}: " + ", ".join(filter(None, (known_words(way), jobs))))
        return "\n".join(lines)


@dataclass(frozen=True)
class PathReport:
    """The ways there and back, by rail where the fabric has rails."""

    paths: tuple[Path, ...]
    assumed: str
    job: str = ""

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def words(self, every: bool = False) -> str:
        """For people."""
        shown = self.paths if every else self.paths[:PATHS_SHOWN]
        lines = [path.words(self.job) for path in shown]
        if more := len(self.paths) - len(shown):
            lines.append(f"and {more} more pairs of ports (--all)")
        return "\n".join(lines)


def path_report(dumps: SiteDumps, a: str, b: str, job: str | None = None) -> PathReport:
    """The ways between two hosts, both of `job` if it is given. Raises `InputError` for hosts that
    are not in the fabric, are one, or not in the job."""
    fabric = dumps.fabric
    hosts = [fabric.hosts.name_of(name) for name in (a, b)]
    for name, host in zip((a, b), hosts, strict=True):
        if host is None:
            raise PlaceNames(fabric).unknown(name)
    if hosts[0] == hosts[1]:
        raise InputError(f"{a} and {b} are one host", remedy="name two")
    if job is not None:
        record = require_job(dumps.records, job)
        job, on = record.id, {fabric.hosts.name_of(host) for host in record.hosts}
        if absent := [n for n, host in zip((a, b), hosts, strict=True) if host not in on]:
            raise InputError(
                f"job {job} does not run on {' and '.join(absent)}",
                remedy=f"it runs on {some(record.hosts, 4)}",
            )
    here, there = (_ports(fabric, str(host)) for host in hosts)
    rails = rails_of(fabric)
    pairs = [
        (s, t, None if rails is None else int(rails.rail[s]))
        for s in here
        for t in there
        if rails is None or rails.rail[s] == rails.rail[t]
    ]
    if not pairs:
        raise InputError(f"{a} and {b} have no live ports on a common rail")
    both = [way for s, t, rail in pairs for way in ((s, t, rail), (t, s, rail))]
    return PathReport(tuple(_path(dumps, *way) for way in both), dumps.assumed, job or "")


def _ports(fabric: Fabric, host: str) -> list[int]:
    """The live ports that jobs use on a host."""
    ports = [t for t in fabric.job_ports[host] if fabric.terminal_up[t]]
    if not ports:
        raise InputError(f"{host} has no live port", remedy="look at `sar-agent cables`")
    return ports


def _path(dumps: SiteDumps, source: int, target: int, rail: int | None) -> Path:
    fabric, egress = dumps.fabric, dumps.routes.egress[0]
    begin, end = (fabric.terminal_description[t] for t in (source, target))
    switch, last = (int(fabric.terminal_switch[t]) for t in (source, target))
    cables, problem = [host_direction(dumps, source, into=True)], ""
    for _ in range(fabric.switches + 1):
        if switch == last:
            break
        name = fabric.switch_name[switch]
        channel = int(fabric.channel_by_port[switch, egress[target, switch]])
        if channel < 0:
            problem = f'"{name}" has no route to {end}'
            break
        if not fabric.channel_up[channel]:
            problem = f"{fabric.channel_name(channel)} is down"
            break
        cables.append(direction_of(dumps, channel))
        switch = int(fabric.channel_target[channel])
    else:
        problem = "the tables lead in a circle"
    if not problem:
        if int(egress[target, last]) != int(fabric.terminal_switch_port[target]):
            problem = f'"{fabric.switch_name[last]}" sends it to another port than that of {end}'
        cables.append(host_direction(dumps, target, into=False))
    return Path(begin, end, rail, tuple(cables), problem)
