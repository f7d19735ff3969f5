"""A template's tables with exceptions, the loads of jobs on them, and what changes them.

Load and phases are weighed here: exceptions that make a channel less full may make messages of one
job meet. Where phases take longer than on the template, paths first make room for each other on
channels that are no fuller than the fullest; then single jobs lose their exceptions. Either stays
only if phases gain more than all messages at once lose. Tables with channels' own limits serve only
where neither loses (`faster_than`): on docs/examples they would take 4 % less all at once, and one
message at a time 14 % longer in the simulator, of which the measure here sees 4 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from sar_agent.routing.phase_contention import phase_contention
from sar_agent.routing.template import Template, loads_on
from sar_agent.routing.tree_moves import ANY, Number, Scratch, scratch_for

LARGE = 4096
"""Terminals. Where jobs have more, they are looked at once instead of up to four times, which takes
a third of the time."""
MOMENTS = 32
"""Moments at which phases are looked at, up to 4,096 terminals; then fewer."""
ALIKE = 1.01
"""Times the phase contention of the template: so much makes no difference."""
WORST = 1.05
"""The same of a single job."""
TRIED = 8
"""The most jobs whose exceptions are weighed against their phases."""
EXCEPTION = 0.5
"""The price of an exception, in messages that meet. With 1, six of the 40 placements of sar-fig8
were slower than on stock fat-tree tables, with half none."""


@dataclass
class ExceptedTables:
    """Tables of one LID offset for the jobs of `loads`."""

    template: Template
    loads: JobLoads
    egress: U8
    """uint8[T + S, S]"""
    options: Options
    own_limits: bool = False
    """Whether load above what a channel's own switches need has a price, so that jobs which could
    do with less load than others have less."""

    @classmethod
    def of(cls, template: Template, mix: JobMix, options: Options, egress: U8) -> ExceptedTables:
        """Tables `egress`, which will be changed, and the loads of a mix on them."""
        return cls(template, loads_on(template, mix, options.objective, egress), egress, options)

    @property
    def most(self) -> float:
        """The load up to which no exception is made."""
        return float(self._most_at().max(initial=0.0))

    def _most_at(self) -> F64:
        """float64[S]: the load up to which each switch's channels need none."""
        most = self.options.target * self.loads.least_loads()
        return np.maximum(most, 1.0) if self.loads.objective == "load" else most

    def _limits(self, most: float | None = None) -> tuple[F64, float, float]:
        """Limit of each channel, float64[C], that of all, and the price of an exception."""
        fabric, at = self.loads.fabric, self._most_at()
        most = float(at.max(initial=0.0)) if most is None else most
        limit = np.maximum(at[fabric.channel_source], at[fabric.channel_target])
        return limit if self.own_limits else np.full_like(limit, most), most, EXCEPTION

    def peak(self) -> float:
        """The largest load (routes with objective `routes`)."""
        return self.loads.peak()

    @property
    def large(self) -> bool:
        return len(self.loads.mix.terminal) > LARGE

    def improve(self) -> None:
        """Makes exceptions for all jobs."""
        self._settle(1 if self.large else 2)
        self.cool()
        if not self.large:
            self._settle(2)  # what cooling moved may meet others, and need not have

    def _settle(self, times: int) -> None:
        for _ in range(times):
            if not self.move_paths(range(len(self.loads.mix.jobs))):
                return

    def move_paths(
        self,
        jobs: Sequence[int] | NDArray[np.intp],
        farthest: Number = ANY,
        most: float | None = None,
    ) -> int:
        """Moves paths of these jobs, those with the heaviest routes first; how many."""
        mix, work, some = self.loads.mix, self.loads.work, np.asarray(jobs, np.intp)
        if not len(some):
            return 0
        # With objective `routes` all routes weigh the same, and large jobs have most of them.
        sizes = np.diff(mix.offset) * (1 if self.loads.objective == "load" else -1)
        keys = self._by_guids(some), sizes[some], -work.unit[some]
        order = some[np.lexsort(keys)].astype(np.uint32)
        parts = self.loads.paths, work, self.scratch(), order, *self._limits(most), farthest
        return except_paths(*parts, self.template.egress, self.egress)

    def cool(self) -> None:
        """Relieves the channels that are still too full."""
        if self.peak() <= self.most:
            return
        loads, source = self.loads, self.loads.fabric.channel_source.astype(np.uint32)
        parts = loads.paths, loads.work, self.scratch(), source, loads.terminals
        cool(*parts, *self._limits(), self.template.egress, self.egress)

    def keep_one_lane(self) -> None:
        """Entries that would need a second lane, where the template needs none, return to it."""
        if self.template.may_loop:
            self.go_back(closing_loops(self.template.fabric, self.template.egress, self.egress))

    def go_back(self, terminals: U32) -> None:
        """The entries to these terminals become those of the template."""
        self.replace(terminals, self.template.egress[terminals])

    def replace(self, terminals: U32, rows: U8) -> None:
        """The entries to these terminals become `rows` uint8[·, S]."""
        self.loads.carry(self.egress, terminals, -1)
        self.egress[terminals] = rows
        self.loads.carry(self.egress, terminals)

    def weigh_phases(self, usual: F64, ceiling: float) -> None:
        """Where one message at a time costs more than `usual` (float64[J]), changes tables if that
        gains more in phases than all messages at once lose, with a load of at most `ceiling`."""
        now = self.contention()
        if _loss(now, usual) <= ALIKE:
            return
        cost = self.cost(now, usual)

        def tried(terminals: U32, change: Callable[[], object]) -> F64:
            nonlocal cost
            kept = self.egress[terminals]
            change()
            then = self.contention()
            if self.peak() <= ceiling and (less := self.cost(then, usual)) < cost:
                cost = less
                return then
            self.replace(terminals, kept)
            return now

        def make_room() -> None:
            self.move_paths(range(len(usual)), most=max(self.most, self.peak()))
            self.keep_one_lane()

        if not self.large:
            now = tried(self.loads.terminals, make_room)
        for j in np.lexsort((self._by_guids(np.arange(len(usual))), -(now / usual)))[:TRIED]:
            if _loss(now, usual) <= ALIKE or now[j] <= ALIKE * usual[j]:
                return
            terminals = self.loads.mix.jobs[j].terminals.astype(np.uint32)
            now = tried(terminals, lambda: self.go_back(terminals))  # noqa: B023

    def cost(self, now: F64, usual: F64) -> float:
        """How long jobs take: all at once, times one at a time."""
        return self.loads.slowdown(self.egress) * _loss(now, usual)

    def faster_than(self, other: ExceptedTables) -> bool:
        """Whether jobs take less time than on other tables, and neither all at once nor one message
        at a time more."""
        ratio = self.loads.slowdown(self.egress) / other.loads.slowdown(other.egress)
        if ratio > 1:
            return False
        now, then = self.contention(), other.contention()
        return bool(_loss(now, then) <= 1 and ratio * now.mean() < then.mean())

    def contention(self, egress: U8 | None = None) -> F64:
        """float64[J]: the phase contention of each job, on these tables or on others."""
        mix = self.loads.mix
        moments = max(MOMENTS // 4, min(MOMENTS, MOMENTS * 4096 // max(1, len(mix.terminal))))
        tables = self.egress if egress is None else egress
        return phase_contention(self.loads.fabric, mix, tables, moments)

    def scratch(self) -> Scratch:
        fabric = self.loads.fabric
        return scratch_for(fabric.switches, fabric.channels, np.diff(self.loads.mix.offset))

    def _by_guids(self, jobs: NDArray[np.intp]) -> NDArray[np.intp]:
        """int[·]: the rank of each of these jobs by its port GUIDs, whatever the order of its
        fabric."""
        guid, mix = self.loads.fabric.terminal_guid, self.loads.mix
        keys = [np.sort(guid[mix.jobs[j].terminals]).byteswap().tobytes() for j in jobs]
        return np.argsort(np.argsort(keys))


def _loss(now: F64, usual: F64) -> float:
    """How many times longer phases take: the mean job, or the worst if it exceeds `WORST`."""
    return max(float(now.mean() / usual.mean()), float((now / usual).max()) / WORST)
