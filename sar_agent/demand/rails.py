"""Rails: port k of a host sends to port k of the other hosts.

On a rail-optimised pod the ports k of all hosts of a pod end on one leaf switch, rail k. NCCL sends
from rail to rail within a host (PXN), so that hardly a message crosses rails in the network. An
all-to-all of all ports, which is taken for jobs of which nothing is known, counts traffic that such
a network is not built for. So a job is split into one job for each rail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, Fabric
from sar_agent.jobs.model import Job, JobMix, multi_switch_mix

PURE_SHARE = 0.95
"""Share of the ports that end on a leaf switch of their own rail, from which a fabric is taken to
be rail-optimised."""


@dataclass(frozen=True, eq=False)
class Rails:
    """The rail of each port that jobs use."""

    fabric: Fabric
    rail: I32
    """int32[T], -1 for ports that jobs do not use."""
    recognised: bool
    """From the cabling; else the number of the port in its host."""

    @property
    def seen(self) -> str:
        """What the cabling shows; empty where it shows no rails."""
        if not self.recognised:
            return ""
        ports = int(self.rail.max()) + 1
        return f"The {ports} ports of a host end on leaf switches of their own rails"

    @property
    def note(self) -> str:
        """What a report says that takes rails from the cabling."""
        return self.seen and (
            f"{self.seen}, so each is taken to send to the same port of the other hosts, as NCCL "
            "does, and each rail of a job counts as a job (--traffic alltoall counts all pairs of "
            "ports)"
        )

    def split(self, mix: JobMix) -> JobMix:
        """One job for each rail of each job, `7 rail 0`, where it spans leaf switches."""
        jobs = []
        for job in mix.jobs:
            rails = self.rail[job.terminals]
            jobs += [
                Job(f"{job.id} rail {rail}", job.terminals[rails == rail], job.traffic, job.weight)
                for rail in np.unique(rails).tolist()
            ]
        return multi_switch_mix(self.fabric, jobs)


def rails_for(fabric: Fabric, traffic: str | None) -> Rails | None:
    """Of `--traffic`: rails for `rail`, none for `alltoall`, and without it those that the cabling
    shows. Raises `InputError` for another word."""
    if traffic not in (None, "rail", "alltoall"):
        raise InputError(f"--traffic {traffic!r} is neither rail nor alltoall")
    if traffic == "alltoall":
        return None
    rails = _rails(fabric)
    return rails if traffic or rails.recognised else None


def _rails(fabric: Fabric) -> Rails:
    """A host of most ports has as many ports as there are rails; a leaf switch is of the rail of
    most of such hosts' ports, and a port of another host is on the rail of its leaf switch."""
    place = np.full(fabric.terminals, -1, np.int32)
    size = np.zeros(fabric.terminals, np.int64)
    for ports in fabric.job_ports.values():
        place[list(ports)], size[list(ports)] = np.arange(len(ports)), len(ports)
    plain = Rails(fabric, place, recognised=False)
    most = int(np.bincount(size[place >= 0], minlength=1).argmax())
    used = np.flatnonzero(size == most)
    if most < 2 or 2 * len(used) < np.count_nonzero(place >= 0):
        return plain
    count = np.zeros((fabric.switches, most), np.int64)
    np.add.at(count, (fabric.terminal_switch[used], place[used]), 1)
    rail_of, known = count.argmax(axis=1), count.sum(axis=1) > 0
    if count.max(axis=1).sum() < PURE_SHARE * len(used) or len(np.unique(rail_of[known])) < 2:
        return plain
    on_rail = (place >= 0) & known[fabric.terminal_switch]
    rail = np.where(on_rail, rail_of[fabric.terminal_switch], place)
    return Rails(fabric, rail.astype(np.int32), recognised=True)
