"""Few exceptions on tables that everybody knows: what one message at a time and all at once cost.

python -m tests.bench exceptions [--only FABRIC / MIX] [--engine NAME] [--out DIR]

Each row is a fabric and a mix, compared with the better of ftree and dmodc in the same run, and
with sar-plus of commit fcf8f3f by a file of its numbers (`exception_rows.BASELINE`). `--only`
takes rows whose name contains the text (`--only dgx-ndr`, `--only "xgft:2;12,24;1,12 / mix:2"`),
or one of the parts `changes` and `fig8`; `--out DIR` keeps the references'
simulated times, so that an engine under work is judged in seconds. Its own results are never kept.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean, geometric_mean, median
from typing import Any, NamedTuple

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.opensm_tables import lab_engine
from sar_lab.research.papers.sar_fig8 import scattered_job
from tests.bench.exception_changes import (
    ENTRIES_EVER,
    change_tables,
)
from tests.bench.exception_rows import (
    BASELINE,
    MIXES,
    NOBODY,
    OTHERS,
    TREES,
    Measured,
    measured,
    reference,
    row_name,
    rows,
)
from tests.bench.phase_times import PhaseTimes
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table, goal

SEEDS = 40
"""Placements, as the row has."""
NEEDED = 38
"""Placements of 40 in which the all-to-all may take no longer than on fat-tree."""


def fig8_table(engine: str) -> Table:
    """An engine and `sar`, placement by placement over OpenSM's own tables of fat-tree."""
    fabric = load_fabric("standin:taurus")
    stock = lab_engine("opensm-ftree").route(fabric, NOBODY, Options())
    table = Table(
        f"sar-fig8: {engine} over stock fat-tree, {SEEDS} placements",
        ("engine", "median", "least", "largest", "at most 1.00"),
        "The Taurus stand-in, one job of 28 hosts on ten leaf switches. Open MPI's order sends one "
        "message after the other without barriers (`shift-free`); times over those on the tables "
        "of OpenSM's ftree, for the same placement.",
    )
    for name in dict.fromkeys((engine, "sar", "dmodc")):
        ratios, own = [], load_engine(name)
        for seed in range(1, SEEDS + 1):
            mix = JobMix.of([scattered_job(fabric, seed)])
            times = [
                float(job_times(fabric, mix, routes, PATTERNS["shift-free"]).time[0])
                for routes in (own.route(fabric, mix, Options()), stock)
            ]
            ratios.append(times[0] / times[1])
        enough = sum(ratio <= 1 + 1e-6 for ratio in ratios)
        table.add(name, f"{median(ratios):.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}",
                  f"{enough} of {SEEDS}")  # fmt: skip
        if name == engine:
            table.goals.append(goal("placements at most 1.00", enough, NEEDED, "", at_least=True))
    return table


ENGINE = "sar-plus"
EQUAL = 1 + 1e-6
"""Rounding errors of the simulator are no loss."""
PHASES, PHASES_EVER, OFTEN = 1.00, 1.03, 0.95
WORST, ALL_AT_ONCE, ALONE = 1.05, 1.05, 0.9
LOAD_TREES, LOAD_OTHERS = 1.05, 1.10
ENTRIES = 0.05
PARTS = ("changes", "fig8")
ONLY = "of `exceptions`: rows with this in `FABRIC / MIX`, or one of " + ", ".join(PARTS)


class Row(NamedTuple):
    """The ratios of a row; at most 1 is as good as the comparison."""

    fabric: str
    mix: str
    references: str
    shift: float
    shift_worst: float
    free: float
    free_worst: float
    alltoall: float
    load: float
    """Largest load over the larger of 1 and the bound."""
    alone: float
    entries: int
    nearest: int
    entries_before: int
    lanes: int
    seconds: float
    repeatable: bool
    sampled: bool

    @property
    def phases(self) -> bool:
        means = max(self.shift, self.free) <= PHASES * EQUAL
        return means and max(self.shift_worst, self.free_worst) <= WORST * EQUAL

    @property
    def loads(self) -> bool:
        most = LOAD_TREES if self.fabric in TREES else LOAD_OTHERS
        return self.alltoall <= ALL_AT_ONCE * EQUAL and self.load <= most * EQUAL

    @property
    def reached(self) -> bool:
        """A row is reached only if its phases and its load are."""
        return self.phases and self.loads

    def cells(self) -> Iterator[str]:
        """The cells of `COLUMNS`."""
        missed = [word for word, ok in (("phases", self.phases), ("load", self.loads)) if not ok]
        yield row_name(self.fabric, self.mix) + (" ~" if self.sampled else "")
        yield " and ".join(missed) or "reached"
        for value in self[3:9]:
            yield f"{value:.3f}"
        yield f"{self.alone:.3f}"
        other = f" ({self.nearest:,})" if self.nearest < self.entries else ""
        yield f"{self.entries:,}{other} / {self.entries_before:,}"
        yield str(self.lanes)
        yield f"{self.seconds:.3f}"


COLUMNS = (
    "fabric / jobs", "missed", "shift", "worst job", "no barrier", "worst job",
    "all at once / today's", "load", "alone", "entries / today's", "lanes", "s",
)  # fmt: skip
NOTE = """Shift, with a barrier after each phase and without: mean job and worst job, over the
better of `ftree` and `dmodc` (`dfsssp` where both refuse: {off}). All at once: mean job, over that
on the tables of sar-plus at commit fcf8f3f. Load: the largest over the larger of 1 and the bound.
Alone: shift of each job with no other on the tables of the mix, mean job, over the same reference.
Entries: hosts' entries that differ from the template (`dmodc`, or `dfsssp` without jobs where that
refuses or loads more before any job; in brackets, from the nearest of these and of the engine's own
templates, if another is nearer),
and those of today's. `mix:1` and `mix:2` scatter jobs over
random hosts, the worst case of fat-tree routes; `placed=tree` places them as Slurm's topology/tree
does. ~: more than 60,000 pairs; shifts go through a sample of their phases, and all at once is
predicted by loads. A row is reached only if its phases (at most 1.00, worst job 1.05) and its load
(1.05 all at once and largest; off trees 1.10) are. {processes} processes at a time."""


def tables(
    full: bool, kept: StoredResults, only: str = "", engine: str = ENGINE
) -> Iterator[Table]:
    """The rows, job changes and failures, sar-fig8."""
    before = json.loads(BASELINE.read_text())
    if only not in PARTS and (found := measured_rows(kept, only, engine)):
        yield rows_table(found, engine)
    if only in ("", "changes"):
        yield from change_tables(engine, before["changes"])
    if only in ("", "fig8"):
        yield fig8_table(engine)


def measured_rows(kept: StoredResults, only: str, engine: str) -> list[Row]:
    """All rows of the fabrics here, on two processors."""
    before = json.loads(BASELINE.read_text())["rows"]
    found = []
    for name, mix, row, known in _measure_all(kept, only, engine):
        if row_name(name, mix) in before:
            found.append(_row(name, mix, row, known, before[row_name(name, mix)]))
        else:
            print(f"{row_name(name, mix)}: not in {BASELINE.name}, left out")
    return found


Found = tuple[str, str, Measured, dict[str, Any]]


def _measure_all(kept: StoredResults, only: str, engine: str) -> Iterator[Found]:
    wanted = [(f, mix) for f in rows(only) for mix in MIXES if only in row_name(f, mix)]
    run = partial(_measure, kept, engine)
    if len(wanted) <= len(MIXES):
        yield from map(run, wanted)
        return
    large = sorted(wanted, key=lambda row: [*OTHERS, *TREES].index(row[0]), reverse=True)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, large)


def _measure(kept: StoredResults, engine: str, row: tuple[str, str]) -> Found:
    return *row, measured(*row, engine), reference(*row, kept)


def _row(name: str, mix: str, row: Measured, known: dict[str, Any], before: dict[str, Any]) -> Row:
    ours = row.times
    theirs = [PhaseTimes(*times) for times in known["engines"].values()]
    pairs = {
        key: [
            getattr(ours, key)[which] / min(getattr(each, key)[which] for each in theirs)
            for which in (0, 1)
        ]
        for key in ("shift", "free")
    }
    return Row(
        name,
        mix,
        " ".join(known["engines"]),
        *pairs["shift"],
        *pairs["free"],
        ours.alltoall[0] / before["alltoall"][0],
        ours.load / max(1.0, known["bound"]),
        ours.alone / min(each.alone for each in theirs),
        row.entries,
        row.nearest,
        before["entries"],
        row.lanes,
        row.seconds,
        row.repeatable,
        ours.sampled,
    )


def rows_table(found: Sequence[Row], engine: str) -> Table:
    """Missed rows first, those that lose most in phases before others."""
    off = sorted({row.fabric for row in found if "dmodc" not in row.references and
                  "ftree" not in row.references})  # fmt: skip
    note = NOTE.format(off=", ".join(off) or "none here", processes=2 if len(found) > 6 else 1)
    table = Table(f"Exceptions: {engine}, {len(found)} rows", COLUMNS, note.replace("\n", " "))
    for row in sorted(found, key=lambda r: (r.reached, -max(r.shift, r.free), -r.load)):
        table.add(*row.cells())
    # Goals missed first.
    table.goals = sorted(_goals(found), key=lambda line: "NOT" not in line)
    return table


def _goals(found: Sequence[Row]) -> Iterator[str]:
    count = len(found)
    reached = sum(row.reached for row in found)
    parts = sum(row.phases for row in found), sum(row.loads for row in found)
    yield f"rows reached: {reached} of {count} (phases {parts[0]}, load {parts[1]})"
    for key, what in (("shift", "shift"), ("free", "shift without barriers")):
        values = [getattr(row, key) for row in found]
        share = sum(value <= PHASES * EQUAL for value in values) / count
        yield goal(f"{what}, rows at most {PHASES:.2f}", share, OFTEN, "", at_least=True)
        yield goal(f"{what}, mean job, largest of a row", max(values), PHASES_EVER, "")
        worst = max(getattr(row, f"{key}_worst") for row in found)
        yield goal(f"{what}, worst job of a row", worst, WORST, "")
    yield goal("all at once, largest of a row", max(r.alltoall for r in found), ALL_AT_ONCE, "")
    yield f"all at once, mean of rows: {fmean(row.alltoall for row in found):.3f}"
    for what, trees, limit in (("trees", True, LOAD_TREES), ("others", False, LOAD_OTHERS)):
        if loads := [row.load for row in found if (row.fabric in TREES) == trees]:
            yield goal(f"load, {what}, largest of a row", max(loads), limit, "")
    yield goal("each job alone, mean of rows", fmean(row.alone for row in found), ALONE, "")
    if ratios := [max(r.entries, 0.5) / r.entries_before for r in found if r.entries_before]:
        yield goal("entries, geometric mean (0 counts as 0.5)", geometric_mean(ratios), ENTRIES, "")
        yield goal("entries, largest of a row", max(ratios), ENTRIES_EVER, "")
        near = max(r.nearest / r.entries_before for r in found if r.entries_before)
        yield f"entries from the nearest template, largest of a row: {near:.3g}"
    yield f"rows that no number of lanes serves: {sum(row.lanes == 0 for row in found)}"
    yield f"rows whose second call gave other tables: {sum(not row.repeatable for row in found)}"
