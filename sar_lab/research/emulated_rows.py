"""Rows of `sar-lab emulate` beside what two models predict of them: the page *Emulated*.

`python -m sar_lab.research.emulated_rows` prints the tables of `sar_lab/research/pages/emulated.md`
from the record (`recorded/emulated.json`); `… record FILE …` makes the record from outputs of
`sar-lab emulate --json`, and adds what the models say of the same fabric, jobs and tables that day
(tables of later commits are others):

- *contention* is that of `quality/collective_contention.py`: what all commands and pages show;
- *fluid* simulates the very programs of the ranks (`emulate/phases.py`): flows share links max-min
  fairly, and a job's next step begins when its last flow has ended. In the emulation each rank
  begins as soon as its own messages are done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sar_agent.demand.collectives import AT_ONCE
from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.demand.rank_order import ranks_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import Routes
from sar_lab.emulate.phases import SHORT, program_of
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows, flows_of_steps, job_ends

RECORD = Path(__file__).parent / "recorded" / "emulated.json"
TABLES = "ftree", "sar-plus"
WITHIN = 1.07
SIZE = 1_000_000
"""Bytes through the busiest port in the simulation: in whole bytes, so that they hardly matter."""


class Row(NamedTuple):
    """One pattern of one mix on both tables. Times are means over jobs, multiples of the time
    alone."""

    fabric: str
    jobs: str
    pattern: str
    mbit: float
    measured: tuple[float, ...]
    """Medians on `TABLES`, …"""
    spread: tuple[float, ...]
    """… and the spread of each, as a share."""
    ratio: tuple[float, ...]
    """The measured ratio, and its interval."""
    idle: tuple[float, ...]
    """The idle share of the processors on `TABLES`."""
    contention: tuple[float, ...]
    fluid: tuple[float, ...]
    """What the models predict on `TABLES`, in the unit of `measured`."""


@dataclass(frozen=True)
class Scene:
    """A fabric with jobs, and the tables."""

    spec: str
    jobs: str

    @cached_property
    def fabric(self) -> Fabric:
        return load_fabric(self.spec)

    @cached_property
    def mix(self) -> JobMix:
        return mix_of_spec(self.jobs, self.fabric)

    @cached_property
    def tables(self) -> tuple[Routes, ...]:
        return tuple(load_engine(name).route(self.fabric, self.mix, Options()) for name in TABLES)

    def contention(self, pattern: str) -> Iterator[float]:
        """What `sar-agent measure` says on each of the tables: the mean over jobs."""
        word = SHORT.get(pattern, pattern)
        return (float(np.mean(self._times(routes, word))) for routes in self.tables)

    def _times(self, routes: Routes, word: str) -> F64:
        if word == AT_ONCE:
            return np.maximum(1.0, traffic_of(self.fabric, self.mix, routes).job_load)
        times: F64 = collective_contention(self.fabric, self.mix, routes.egress[0], word)
        return times

    def fluid(self, pattern: str) -> Iterator[float]:
        """The simulated time on each of the tables: the mean over jobs."""
        flows = self._flows(pattern)
        alone = SIZE * 8e-9 / float(self.fabric.terminal_rate.max())
        for routes in self.tables:
            end = end_times(routed_links(self.fabric, routes, flows), flows)
            yield float(job_ends(flows, end, len(self.mix.jobs)).mean()) / alone

    def _flows(self, pattern: str) -> Flows:
        ranks = np.split(ranks_of(self.fabric, self.mix), self.mix.offset[1:-1])
        steps, sizes, job, last = [], [], [], []
        for number, each in enumerate(ranks):
            program = program_of(self.mix.jobs[number], pattern, SIZE)
            all_steps = [step for step in program.steps * program.passes if step]
            for k, step in enumerate(all_steps):
                steps.append(each[np.array(list(step), np.int32)])
                sizes.append(np.array(list(step.values()), np.float64) * 8e-9)
                job.append(number)
                last.append(k == len(all_steps) - 1)
        return flows_of_steps(
            steps, np.concatenate(sizes), job=np.array(job, np.uint32), last=np.array(last)
        )


def rows(record: Path = RECORD) -> list[Row]:
    """The recorded rows."""
    return [
        Row(run["fabric"], run["jobs"], **{name: _value(row[name]) for name in Row._fields[2:]})
        for run in json.loads(record.read_text())["runs"]
        for row in run["rows"]
    ]


def _value(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found


def recorded(outputs: Sequence[Path]) -> dict[str, Any]:
    """The record of outputs of `sar-lab emulate --tables ftree,sar-plus --json`. Raises
    `ValueError` for a row that does not count."""
    runs = []
    for path in outputs:
        found = json.loads(path.read_text())
        scene, made = Scene(found["fabric"], found["mix"]), []
        for before, after in zip(found["rows"][::2], found["rows"][1::2], strict=True):
            if not (before["measured"] and after["measured"]):
                raise ValueError(f"{path}: {before['run']} was not measured")
            pattern, both = before["run"], (before, after)
            row = Row(
                scene.spec, scene.jobs, pattern, after["mbit"],
                measured=_rounded(each["time"]["median"] for each in both),
                spread=_rounded(each["spread"] for each in both),
                ratio=_rounded(after["ratio"][word] for word in ("median", "low", "high")),
                idle=_rounded(each["idle"] for each in both),
                contention=_rounded(scene.contention(pattern)),
                fluid=_rounded(scene.fluid(pattern)),
            )  # fmt: skip
            made.append(dict(zip(Row._fields[2:], row[2:], strict=True)))
        runs.append({"fabric": scene.spec, "jobs": scene.jobs, "rows": made})
    return {"tables": TABLES, "runs": runs}


def _rounded(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)


class Agreement(NamedTuple):
    """How well a model predicts."""

    rows: int
    correlation: float
    slope: float
    """Of measured over predicted, both less 1."""
    within: int
    """Rows in which the two differ by at most 7 %."""
    worst: float
    """The largest of one over the other."""

    @staticmethod
    def of(predicted: ArrayLike, measured: ArrayLike) -> Agreement:
        x, y = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
        off = np.maximum(x / y, y / x)
        slope = ((x - 1) * (y - 1)).sum() / ((x - 1) ** 2).sum()
        correlation = np.corrcoef(x, y)[0, 1]
        within = np.count_nonzero(off <= WITHIN)
        return Agreement(len(x), float(correlation), float(slope), int(within), float(off.max()))


def agreement_lines(found: Sequence[Row]) -> Iterator[str]:
    """A table: how well both models predict times, and the ratios of each pattern."""
    yield "| | model | correlation | slope | within 7 % | worst |"
    yield "|---|---|---:|---:|---:|---:|"
    kinds = {"times on both tables": found, "ratios": found}
    patterns = dict.fromkeys(row.pattern for row in found)
    kinds |= {f"ratios, {name}": [r for r in found if r.pattern == name] for name in patterns}
    for what, some in kinds.items():
        for model in ("contention", "fluid"):
            each = _agreement(some, model, "times" in what)
            yield (
                f"| {what} | {model} | {each.correlation:.2f} | {each.slope:.2f} "
                f"| {each.within} of {each.rows} | {each.worst:.2f} |"
            )


def _agreement(found: Sequence[Row], model: str, times: bool) -> Agreement:
    predicted: list[tuple[float, ...]] = [getattr(row, model) for row in found]
    if times:
        return Agreement.of(np.concatenate(predicted), np.concatenate([r.measured for r in found]))
    return Agreement.of([b / a for a, b in predicted], [row.ratio[0] for row in found])


def row_lines(found: Sequence[Row]) -> Iterator[str]:
    """A table of all rows."""
    yield (
        "| jobs | pattern | Mbit/s | ftree, sar-plus: × alone | ratio (interval) | contention "
        "| fluid | idle |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for row in found:
        contention, fluid = (each[1] / each[0] for each in (row.contention, row.fluid))
        yield (
            f"| {row.jobs} | {row.pattern} | {row.mbit:g} "
            f"| {row.measured[0]:.2f}, {row.measured[1]:.2f} "
            f"| **{row.ratio[0]:.3f}** ({row.ratio[1]:.3f}–{row.ratio[2]:.3f}) "
            f"| {contention:.3f} | {fluid:.3f} | {row.idle[0]:.2f}, {row.idle[1]:.2f} |"
        )


def lines() -> Iterator[str]:
    """The tables of the page."""
    found = rows()
    yield from agreement_lines(found)
    for fabric in dict.fromkeys(row.fabric for row in found):
        yield f"\n`{fabric}`:\n"
        yield from row_lines([row for row in found if row.fabric == fabric])


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        print(json.dumps(recorded([Path(name) for name in sys.argv[2:]])))
    else:
        print("\n".join(lines()))
