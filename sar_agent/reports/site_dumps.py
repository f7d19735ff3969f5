"""What a report is made of: a fabric, its jobs, their routes, and what ports counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sar_agent.counters import CounterWindow
from sar_agent.counters.port_errors import PortErrors
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.quality.worst_links import users_of
from sar_agent.routing.routes import Routes


class JobOnLink(NamedTuple):
    """A job with routes over a link, or on a host."""

    job: str
    user: str
    start: float | None
    """Unix seconds; None if not known."""
    routes: int
    """Of this job over the link; 0 for the cable of a host."""


@dataclass(frozen=True, eq=False)
class SiteDumps:
    """The dumps of a site; what was not given is None or empty."""

    fabric: Fabric
    records: tuple[JobRecord, ...]
    mix: JobMix
    routes: Routes
    assumed: str = ""
    """The engine whose routes stand in for those in force, which were not given."""
    window: CounterWindow | None = None
    errors: PortErrors | None = None

    @cached_property
    def traffic(self) -> Traffic:
        """The predicted traffic of the jobs."""
        return traffic_of(self.fabric, self.mix, self.routes)

    @cached_property
    def _by_id(self) -> dict[str, JobRecord]:
        return {record.id: record for record in self.records}

    @cached_property
    def _on_host(self) -> dict[str, list[JobRecord]]:
        found: dict[str, list[JobRecord]] = {}
        for record in self.records:
            for host in record.hosts:
                if name := self.fabric.hosts.name_of(host):
                    found.setdefault(name, []).append(record)
        return found

    def jobs_over(self, channel: int) -> tuple[JobOnLink, ...]:
        """The jobs with routes over a channel, those with the most first."""
        users = users_of(self.traffic, channel)
        found = [self._named(self.mix.jobs[j].id, routes) for j, routes in users]
        return tuple(sorted(found, key=lambda each: (-each.routes, each.job)))

    def jobs_on(self, terminal: int) -> tuple[JobOnLink, ...]:
        """The jobs on a terminal's host."""
        records = self._on_host.get(self.fabric.terminal_host[terminal], ())
        return tuple(JobOnLink(r.id, r.user, r.start, 0) for r in records)

    def channel_errors(self, channel: int) -> dict[str, int]:
        """The errors that the port at the channel's source has counted."""
        if self.errors is None:
            return {}
        switch = int(self.fabric.channel_source[channel])
        guid, lid = int(self.fabric.switch_guid[switch]), int(self.fabric.switch_lid[switch])
        return self.errors.at((guid,), lid, int(self.fabric.channel_port[channel]))

    def terminal_errors(self, terminal: int) -> tuple[dict[str, int], dict[str, int]]:
        """The errors that a host's port has counted, and the switch port that it is cabled to."""
        if self.errors is None:
            return {}, {}
        fabric, t = self.fabric, terminal
        own = (int(fabric.terminal_guid[t]), int(fabric.terminal_node_guid[t]))
        switch = int(fabric.terminal_switch[t])
        return (
            self.errors.at(own, int(fabric.terminal_lid[t]), int(fabric.terminal_port_number[t])),
            self.errors.at(
                (int(fabric.switch_guid[switch]),),
                int(fabric.switch_lid[switch]),
                int(fabric.terminal_switch_port[t]),
            ),
        )

    def _named(self, job: str, routes: int) -> JobOnLink:
        record = self._by_id.get(job)
        return JobOnLink(job, record.user if record else "", record and record.start, routes)
