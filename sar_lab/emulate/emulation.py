"""The whole of `sar-lab emulate`: programs in turn, and in each round all tables in turn.

A run whose idle share is too small does not count. Then the rate of all cables is halved and the
program begins anew, as times at two rates cannot be compared; after the last halving the program is
"not measured". What the machine carries is found by the first program and kept for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sar_agent.demand.rank_order import ranks_of
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Routes
from sar_lab.emulate import idle
from sar_lab.emulate.namespaces import EmulatedFabric, ideal_seconds
from sar_lab.emulate.runner import Run
from sar_lab.emulate.statistics import Compared, compare
from sar_lab.emulate.tables import EmulatedTables

BUSY = "not measured: this machine is busy"
_SLOWEST = 40.0
"""Times the ideal time after which a run is given up; a run has 20 s more than that."""


class Emulated:
    """An emulated fabric with its tables: what programs run on."""

    def __init__(self, network: EmulatedFabric, mix: JobMix) -> None:
        self.network, self.mix = network, mix
        self.tables = EmulatedTables(network)
        ranks = ranks_of(network.fabric, mix)
        self.terminals = [t.tolist() for t in np.split(ranks, mix.offset[1:-1])]
        """The terminals of each job, in the order of its ranks."""

    def install(self, routes: Routes) -> None:
        """Raises `CheckFailed` where the routes are then not as the tables say."""
        self.tables.install(routes)
        self.tables.require_equal()


@dataclass
class TimedProgram:
    """A program on all tables, in all rounds."""

    name: str
    rate: float
    """Bits a second at which it was measured."""
    runs: dict[str, dict[int, Run]] = field(default_factory=dict)
    """By tables and round."""
    busy: bool = False
    """No rate left enough of the machine idle."""

    def idle(self, tables: str) -> float:
        """The least idle share of the runs on these tables."""
        return min((run.idle for run in self.runs[tables].values()), default=0.0)

    def lost(self, tables: str) -> list[str]:
        """Why runs were lost, by round."""
        return [f"round {n}: {r.lost}" for n, r in self.runs[tables].items() if r.lost]


Runner = Callable[[Emulated, float], Run]
"""Runs a program of all jobs once, within these seconds."""


class Timed(NamedTuple):
    """A program, and what its times are compared with."""

    run: Runner
    size: int | None
    """Bytes through the busiest port of each job: times are multiples of what this port would take
    alone. None: times stay as they were printed."""

    def unit(self, rate: float) -> float:
        """What times are divided by."""
        return 1.0 if self.size is None else ideal_seconds(self.size, rate)


@dataclass
class Emulation:
    """What is measured, on what."""

    fabric: Fabric
    mix: JobMix
    tables: Mapping[str, Routes]
    """By name; others are compared with the first."""
    programs: Mapping[str, Timed]
    rounds: int
    tell: Callable[[str], None]
    measured: list[TimedProgram] = field(default_factory=list)

    def run(self, site: Emulated) -> None:
        """Fills `measured`."""
        first = site.network.rate
        for name, timed in self.programs.items():
            program = TimedProgram(name, site.network.rate)
            self.measured.append(program)
            while not self._rounds(site, program, timed):
                if site.network.rate * 2**idle.HALVINGS <= first * 1.001:
                    program.busy = True
                    self.tell(f"{name}: {BUSY}")
                    break
                program.rate = site.network.rate / 2
                self.tell(f"{name}: too little of the machine was idle; rate halved")
                site.network.set_rate(program.rate)

    def _rounds(self, site: Emulated, program: TimedProgram, timed: Timed) -> bool:
        """False: a run did not count."""
        program.runs = {tables: {} for tables in self.tables}
        seconds = 20 + _SLOWEST * timed.unit(site.network.rate)
        for number in range(1, self.rounds + 1):
            for tables, routes in self.tables.items():
                site.install(routes)
                run = program.runs[tables][number] = timed.run(site, seconds)
                shown = f"lost ({run.lost})" if run.lost else f"{np.mean(run.seconds):.3f} s"
                self.tell(
                    f"{program.name}, round {number} of {self.rounds}, {tables}: {shown}, "
                    f"idle {run.idle:.2f}"
                )
                if not run.lost and not idle.counts(run.idle):
                    return False
        return True

    def compared(self, program: TimedProgram) -> dict[str, Compared]:
        """By tables: the mean of the jobs' times over their unit."""
        unit = self.programs[program.name].unit(program.rate)
        return compare(
            {
                tables: {
                    number: float(np.mean(run.seconds)) / unit
                    for number, run in runs.items()
                    if not run.lost
                }
                for tables, runs in program.runs.items()
            }
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """For `--json`, one row for each program and tables."""
        for program in self.measured:
            compared = self.compared(program)
            for tables, row in compared.items():
                runs = program.runs[tables].values()
                yield {
                    "run": program.name,
                    "tables": tables,
                    "mbit": program.rate / 1e6,
                    "measured": not program.busy and row.timed is not None,
                    "time": row.timed and row.timed._asdict(),
                    "spread": row.spread,
                    "ratio": row.ratio and row.ratio._asdict(),
                    "differs": row.differs,
                    "job_times": _jobs(runs, self.programs[program.name].unit(program.rate)),
                    "idle": program.idle(tables),
                    "late": max((run.late for run in runs), default=0.0),
                    "lost": program.lost(tables),
                }


def _jobs(runs: Iterable[Run], unit: float) -> list[float]:
    """Of each job the median time."""
    times = [run.seconds for run in runs if not run.lost]
    return [] if not times else (np.median(np.array(times), axis=0) / unit).tolist()
