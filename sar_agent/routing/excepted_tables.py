"""A template's tables with exceptions, the loads of jobs on them, and what changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.cool_channels import cool
from sar_agent.routing.engine import Options
from sar_agent.routing.exceptions import except_paths
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.lane_guard import closing_loops
from sar_agent.routing.template import Template, loads_on
from sar_agent.routing.tree_moves import Scratch, scratch_for

LARGE = 4096
"""Terminals. Where jobs have more, they are looked at once instead of twice."""
EXCEPTION = 0.5
"""The price of an exception, in products of load."""


@dataclass
class ExceptedTables:
    """Tables of one LID offset for the jobs of `loads`."""

    template: Template
    loads: JobLoads
    egress: U8
    """uint8[T + S, S]"""
    options: Options

    @classmethod
    def of(cls, template: Template, mix: JobMix, options: Options, egress: U8) -> ExceptedTables:
        """Tables `egress`, which will be changed, and the loads of a mix on them."""
        return cls(template, loads_on(template, mix, options.objective, egress), egress, options)

    @property
    def most(self) -> float:
        """The load up to which no exception is made."""
        most: F64 = self.options.target * self.loads.least_loads()
        least = 1.0 if self.loads.objective == "load" and len(most) else 0.0
        return max(least, float(most.max(initial=0.0)))

    def peak(self) -> float:
        """The largest load (routes with objective `routes`)."""
        return self.loads.peak()

    def improve(self) -> None:
        """Makes exceptions for the load of all jobs."""
        for _ in range(1 if len(self.loads.mix.terminal) > LARGE else 2):
            if not self.move_paths(range(len(self.loads.mix.jobs))):
                break
        self.cool()

    def move_paths(self, jobs: Sequence[int] | NDArray[np.intp]) -> int:
        """Moves paths of these jobs, those with the heaviest routes first; how many."""
        mix, work, some = self.loads.mix, self.loads.work, np.asarray(jobs, np.intp)
        if not len(some):
            return 0
        # With objective `routes` all routes weigh the same, and large jobs have most of them.
        sizes = np.diff(mix.offset) * (1 if self.loads.objective == "load" else -1)
        keys = self._by_guids(some), sizes[some], -work.unit[some]
        order = some[np.lexsort(keys)].astype(np.uint32)
        parts = self.loads.paths, work, self.scratch(), order, self.most, EXCEPTION
        return except_paths(*parts, self.template.egress, self.egress)

    def cool(self) -> None:
        """Relieves the channels that are still too full."""
        if self.peak() <= self.most:
            return
        loads, source = self.loads, self.loads.fabric.channel_source.astype(np.uint32)
        parts = loads.paths, loads.work, self.scratch(), source, loads.terminals
        cool(*parts, self.most, EXCEPTION, self.template.egress, self.egress)

    def keep_one_lane(self) -> None:
        """Entries that would need a second lane, where the template needs none, return to it."""
        if self.template.may_loop:
            self.go_back(closing_loops(self.template.fabric, self.template.egress, self.egress))

    def go_back(self, terminals: U32) -> None:
        """The entries to these terminals become those of the template."""
        egress = self.egress.copy()
        egress[terminals] = self.template.egress[terminals]
        self.take(egress)

    def take(self, egress: U8) -> None:
        """The tables become `egress` uint8[T + S, S]."""
        changed = (egress != self.egress).any(axis=1)
        terminals = self.loads.terminals[changed[self.loads.terminals]]
        self.loads.carry(self.egress, terminals, -1)
        self.egress[changed] = egress[changed]
        self.loads.carry(self.egress, terminals)

    def scratch(self) -> Scratch:
        return scratch_for(self.loads.fabric.switches)

    def _by_guids(self, jobs: NDArray[np.intp]) -> NDArray[np.intp]:
        """int[·]: the rank of each of these jobs by its port GUIDs, whatever the order of its
        fabric."""
        guid, mix = self.loads.fabric.terminal_guid, self.loads.mix
        keys = [np.sort(guid[mix.jobs[j].terminals]).byteswap().tobytes() for j in jobs]
        return np.argsort(np.argsort(keys))
