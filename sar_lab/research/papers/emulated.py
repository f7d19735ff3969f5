"""Rows *emulated*: set-ups of the papers on fabrics that fit on one machine, over real packets
(`sar_lab/emulate/`), beside the fluid and the packets of the rows of the same names.

A draw holds what was measured, and on what. A place where less than a quarter of the machine was
idle is not counted: it is drawn no conclusion from, whatever its time.

**Weak spot:** fabrics are smaller than the papers', and of an IP network with InfiniBand's tables.
Tables hold ways by destination only, so Random and S-mod-k are not here.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import sched_getaffinity
from pathlib import Path

import numpy as np

from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_lab.emulate import WHAT_IT_IS_NOT as WHAT_IT_IS_NOT  # rows.toml names it
from sar_lab.emulate.emulation import Emulated, Emulation
from sar_lab.emulate.idle import counts
from sar_lab.emulate.namespaces import EmulatedFabric, require_emulation
from sar_lab.emulate.rank_runner import pattern_runner
from sar_lab.emulate.runner import ranks_program
from sar_lab.research.papers.claims import Claim, order
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.published import Quote, quotes

ROUNDS, RATE, SIZE = 5, 2e6, 250_000
ROOTS = 8, 4, 2


@dataclass(frozen=True)
class EmulatedTimes:
    """One program on one set of tables."""

    tables: str
    median: float
    """Of the times of the job, over that of its busiest port alone; 0: not measured."""
    idle: float
    """The least idle share of the processors."""

    @property
    def counted(self) -> bool:
        return self.median > 0 and counts(self.idle)


@dataclass(frozen=True)
class EmulatedDraw:
    """One program on all tables."""

    fabric: str
    hosts: int
    program: str
    mbit: float
    rounds: int
    machine: str
    date: str
    times: tuple[EmulatedTimes, ...]

    def of(self, tables: str) -> EmulatedTimes:
        return next(each for each in self.times if each.tables == tables)


def sar_fig8_emulated(seeds: Sequence[int]) -> Outcome:
    """The paper's job among others that send, one message after the other."""
    draws = [scattered(seed, ROUNDS, RATE) for seed in seeds]
    says = "the fat tree slower than SAR, others send"
    return _outcome(draws, slower(draws, "ftree", "sar", says, quotes("sar-fig8")["sar"]))


def oblivious_wrf_emulated(seeds: Sequence[int]) -> Outcome:
    """WRF's exchange with the rows above and below, on trees whose roots are removed."""
    draws = [wrf(roots, seed, ROUNDS, RATE) for roots in ROOTS for seed in seeds]
    some = [draw for draw in draws if int(draw.fabric.rpartition(",")[2]) == ROOTS[0]]
    says = f"WRF, w2 = {ROOTS[0]}: r-NCA-d slower than D-mod-k"
    said = quotes("oblivious-wrf-emulated")["optimum"]
    return _outcome(draws, slower(some, "rnca-d", "dmodk", says, said))


def slower(
    draws: Sequence[EmulatedDraw], slow: str, fast: str, says: str, said: Quote | None = None
) -> Claim:
    """An order over the draws that count; not told apart where none does, or they disagree."""
    pairs = [(draw.of(slow), draw.of(fast)) for draw in draws]
    ratios = [a.median / b.median for a, b in pairs if a.counted and b.counted]
    holds = None
    if ratios and all(r > 1 for r in ratios):
        holds = True
    elif ratios and all(r < 1 for r in ratios):
        holds = False
    words = f"{np.median(ratios):.2f} times" if ratios else "not measured"
    return order(says, holds, f"{words}, {len(ratios)} of {len(pairs)} counted", said=said)


def _outcome(draws: Sequence[EmulatedDraw], claim: Claim) -> Outcome:
    head = ["fabric", "program", "tables", "times alone", "idle", "Mbit/s", "machine, date"]
    rows = [
        [draw.fabric, draw.program, each.tables,
         f"{each.median:.2f}" if each.counted else "not counted", f"{each.idle:.2f}",
         f"{draw.mbit:g}", f"{draw.machine}, {draw.date}"]
        for draw in draws for each in draw.times
    ]  # fmt: skip
    return Outcome([claim], [ResultTable(head, rows)])


def machine() -> str:
    """The machine that measures, in words."""
    return f"{len(sched_getaffinity(0))} processors, Linux {platform.release()}"


@measured
def scattered(seed: int, rounds: int, rate: float) -> EmulatedDraw:
    """sar-fig8 on 48 hosts: 16 hosts on eight leaves, and others on the rest."""
    spec = "xgft:2;6,8;1,4"
    fabric = xgft_fabric(spec)
    random = np.random.default_rng(seed)
    of_leaf = [np.flatnonzero(fabric.terminal_switch == leaf) for leaf in fabric.leaves]
    job = np.concatenate([random.choice(hosts, 2, replace=False) for hosts in of_leaf])
    rest = random.permutation(np.setdiff1d(np.arange(fabric.terminals), job))
    others = (make_job(f"other{n}", part) for n, part in enumerate(np.split(rest, 4)))
    mix = JobMix((make_job("fig8", job), *others))
    tables = {name: _routes(spec, name, mix) for name in ("ftree", "sar", "sar-plus")}
    return _measured(spec, mix, tables, "pairwise", rounds, rate)


@measured
def wrf(roots: int, seed: int, rounds: int, rate: float) -> EmulatedDraw:
    """WRF of 64 ranks, eight in a row."""
    spec = f"xgft:2;8,8;1,{roots}"
    mix = mix_of_spec("blocks:64", xgft_fabric(spec))
    tables = {
        name: load_engine(name).route(xgft_fabric(spec), mix, Options(seed=seed))
        for name in ("dmodk", "rnca-d")
    }
    sends = [(i, i + by) for i in range(64) for by in (-8, 8) if 0 <= i + by < 64]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "wrf64")
        path.write_text("".join(f"{a} {b}\n" for a, b in sends))
        return _measured(spec, mix, tables, str(path), rounds, rate)


def _routes(spec: str, name: str, mix: JobMix) -> Routes:
    return routed(load_engine(name), xgft_fabric(spec), mix, Options())


def _measured(
    spec: str, mix: JobMix, tables: dict[str, Routes], pattern: str, rounds: int, rate: float
) -> EmulatedDraw:
    """The times of the first job, while all of them run the pattern."""
    require_emulation()
    fabric = xgft_fabric(spec)
    with ExitStack() as stack:
        binary = stack.enter_context(ranks_program())
        network = stack.enter_context(EmulatedFabric(fabric, rate))
        name = Path(pattern).name
        programs = {name: pattern_runner(binary, mix, pattern, SIZE)}
        emulation = Emulation(fabric, mix, tables, programs, rounds, lambda line: None)
        emulation.run(Emulated(network, mix))
    rows = list(emulation.rows())
    return EmulatedDraw(
        spec,
        fabric.terminals,
        name,
        rows[0]["mbit"],
        rounds,
        machine(),
        time.strftime("%Y-%m-%d"),
        tuple(
            EmulatedTimes(
                row["tables"], row["job_times"][0] if row["measured"] else 0.0, row["idle"]
            )
            for row in rows
        ),
    )
