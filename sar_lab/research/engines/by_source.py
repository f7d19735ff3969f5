"""What `route` reports of an engine that routes by source, whose routes do not fit into one table.

With a traffic pattern the report also has the contention of its phases.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sar_agent.demand.patterns import phases_of
from sar_agent.demand.rank_order import ranks_of
from sar_agent.demand.rates import declared_flows, route_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32, I64
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.keys.key import subtree_bound
from sar_agent.routing.routes import Routes
from sar_agent.util.text_files import write_text
from sar_lab.fluid.path_routes import PathRoutes

PAIRS_AT_A_TIME = 1 << 20


class PatternContention(NamedTuple):
    """The contention of one phase."""

    flows: int
    """The most flows of the phase on a channel between switches."""
    bound: int
    """A lower bound for any routes: flows that leave or enter a subtree over its channels."""


class BySource(ABC):
    """An engine (`SourceRouted`) whose routes take LID offsets to install; `paths` needs none."""

    name = ""
    by_source = True

    @abstractmethod
    def paths(self, fabric: Fabric, mix: JobMix, options: Options) -> PathRoutes:
        """Raises `Unserved` where the fabric is no XGFT."""

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """A table for each root; raises `Unserved`, too, where `options.lmc` gives too few."""
        routes = self.paths(fabric, mix, options).as_tables(options.lmc)
        return Routes(self.name, fabric.digest, routes.egress)

    def describe(self, fabric: Fabric, mix: JobMix, options: Options) -> tuple[dict[str, Any], str]:
        """The load of the jobs' all-to-alls, and the contention of `options.pattern`."""
        started = time.perf_counter()
        paths = self.paths(fabric, mix, options)
        seconds = time.perf_counter() - started
        efi, load = path_traffic(paths, mix)
        efi_max = int(efi.max(initial=0))
        report = {
            "engine": self.name,
            "seconds": seconds,
            "source_routed": True,
            "lid_offsets_needed": paths.view.ncas,
            "effective_efi_max": efi_max,
            "load_max": float(load.max(initial=0.0)),
        }
        sentence = (
            f"{self.name} routes by source and needs {paths.view.ncas} LID offsets, one per root; "
            f"effective EFI max {efi_max}, largest load {report['load_max']:.2f}"
        )
        if options.pattern:
            results = [contention(paths, *phase) for phase in phases(fabric, mix, options.pattern)]
            report["contention"] = [{"flows": each.flows, "bound": each.bound} for each in results]
            worst = max((each.flows for each in results), default=0)
            bound = max((each.bound for each in results), default=0)
            sentence += f"; {options.pattern}: at most {worst} flows on a link (bound {bound})"
        return report, sentence

    def write_offsets(self, path: Path, fabric: Fabric, mix: JobMix, options: Options) -> None:
        """Writes the LID offset to send to for each host port (`UCX_IB_LID_PATH_BITS`); no file
        where a source needs several."""
        routes = self.paths(fabric, mix, options)
        if not routes.one_root_per_source:
            return
        ports = np.flatnonzero(fabric.is_host_port).astype(np.int32)
        lines = ["# host port-guid lid-offset"]
        for t, offset in zip(ports.tolist(), routes.nca(ports, ports).tolist(), strict=True):
            lines.append(f"{fabric.terminal_host[t]} 0x{fabric.terminal_guid[t]:016x} {offset}")
        write_text(path, "\n".join(lines) + "\n")


def pairs_of(fabric: Fabric, mix: JobMix) -> Iterator[tuple[int, I32, I32]]:
    """(job, sources, destinations): all ordered pairs inside each job, `PAIRS_AT_A_TIME` of them at
    a time."""
    for number, job in enumerate(mix.jobs):
        size = len(job.terminals)
        step = max(1, PAIRS_AT_A_TIME // size)
        for first in range(0, size, step):
            senders = job.terminals[first : first + step]
            source, destination = np.repeat(senders, size), np.tile(job.terminals, len(senders))
            other = source != destination
            yield number, source[other], destination[other]


def path_traffic(routes: PathRoutes, mix: JobMix) -> tuple[I64, F64]:
    """(effective EFI int64[C] of all pairs of jobs, load float64[C] of those that send) on these
    routes."""
    fabric = routes.fabric
    efi, load = np.zeros(fabric.channels, np.int64), np.zeros(fabric.channels)
    demand, ranks = route_demand(fabric, mix), ranks_of(fabric, mix)
    declared = {j: flows for j, job in enumerate(mix.jobs) if (flows := declared_flows(job))}

    def crossing(source: I32, destination: I32) -> I64:
        channels = routes.channels(source, destination)
        return np.bincount(channels[channels >= 0], minlength=fabric.channels)

    for job, source, destination in pairs_of(fabric, mix):
        count = crossing(source, destination)
        efi += count
        if job not in declared:
            load += count * float(demand[job])
    for job, flows in declared.items():
        load += crossing(*ranks[mix.offset[job] + flows.pairs]) * float(demand[job])
    return efi, load / fabric.channel_rate


def phases(fabric: Fabric, mix: JobMix, pattern: str) -> list[tuple[I32, I32]]:
    """(sources, destinations) of each phase of the pattern, in all jobs at once."""
    of_jobs = [phases_of(pattern, fabric, job) for job in mix.jobs]
    all_phases = []
    for i in range(max(map(len, of_jobs), default=0)):
        parts = [of_job[i] for of_job in of_jobs if i < len(of_job)]
        all_phases.append(
            (np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))
        )
    return all_phases


def contention(paths: PathRoutes, source: I32, destination: I32) -> PatternContention:
    """The contention of the flows source → destination (int32[N] each) on their routes."""
    channels = paths.channels(source, destination)
    count = np.bincount(channels[channels >= 0], minlength=1)
    leaf = paths.fabric.terminal_switch
    bound = subtree_bound(paths.view, leaf[source], leaf[destination])
    return PatternContention(int(count.max()), bound)
