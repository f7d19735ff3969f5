"""What a report is made of: a fabric, its jobs, their routes, and what ports counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sar_agent.counters import CounterWindow
from sar_agent.counters.port_errors import PortErrors
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_agent.quality.ring_messages import RingMessages, message_words, ring_messages
from sar_agent.quality.worst_links import jobs_over
from sar_agent.routing.routes import Routes


@dataclass(frozen=True)
class JobOnLink:
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
    """Of the ports of this fabric (`PortErrors.of`)."""
    predicted: Traffic | None = None
    """The traffic of these jobs by these routes, where it is known already."""

    @cached_property
    def traffic(self) -> Traffic:
        """The predicted traffic of the jobs."""
        return self.predicted or traffic_of(self.fabric, self.mix, self.routes)

    def rings_on(self, channel: int) -> tuple[str, ...]:
        """The messages of rings over a channel, in words, where they meet there."""
        found = self._rings.on(channel)
        return tuple(message_words(self._rings, self.fabric, self.mix, m) for m in found)

    @cached_property
    def _rings(self) -> RingMessages:
        return ring_messages(self.fabric, self.mix, self.routes)

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
        found = []
        for job, routes in jobs_over(self.traffic, channel).items():
            known = self._by_id.get(job)  # generated jobs have no record
            user, start = (known.user, known.start) if known else ("", None)
            found.append(JobOnLink(job, user, start, routes))
        return tuple(sorted(found, key=lambda each: (-each.routes, each.job)))

    def jobs_on(self, terminal: int) -> tuple[JobOnLink, ...]:
        """The jobs on a terminal's host."""
        records = self._on_host.get(self.fabric.terminal_host[terminal], ())
        return tuple(JobOnLink(r.id, r.user, r.start, 0) for r in records)

    def channel_errors(self, channel: int) -> Mapping[str, int]:
        """The errors that the port at the channel's source has counted."""
        switch = self.fabric.channel_source[channel]
        return self._errors(self.fabric.switch_guid[switch], self.fabric.channel_port[channel])

    def terminal_errors(self, terminal: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The errors that a host's port has counted, and the switch port that it is cabled to."""
        fabric, t = self.fabric, terminal
        return (
            self._errors(fabric.terminal_guid[t], fabric.terminal_port_number[t]),
            self._errors(
                fabric.switch_guid[fabric.terminal_switch[t]], fabric.terminal_switch_port[t]
            ),
        )

    def _errors(self, guid: np.uint64, port: np.integer[Any]) -> Mapping[str, int]:
        return self.errors.counts.get((int(guid), 0, int(port)), {}) if self.errors else {}
