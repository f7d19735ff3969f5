"""Collectives on our tables: over the better of ftree and dmodc, and beside an earlier engine.

Each row is a fabric and a mix. "Before" is sar-plus of commit `BEFORE`, in turn, on the same fabric
and jobs, from a git worktree in `out/`, which stays there with its compiled kernels. Contention is
that of `quality/`; where neither ftree nor dmodc serves a fabric, dfsssp stands in for them. The
environment variable `ONLY` takes rows whose name contains its text.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path
from statistics import fmean, geometric_mean
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, PAIRWISE, RING
from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8
from sar_agent.jobs import JobMix
from sar_agent.jobs.tree_placement import hosts_by_leaf
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.quality.contention_bounds import contention_bounds
from sar_agent.quality.measures import MEETS
from sar_agent.routing import Options, load_engine
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.template import loads_on, nearest_template, template_of
from tests.bench.bench_fabrics import available, fabric_of
from tests.bench.table import Table

BEFORE = "2503915c"
WORDS = tuple(COLLECTIVES)
KINDS = {
    "xgft:2;24,24;1,24": "full",
    "xgft:3;12,12,12;1,12,12": "full",
    "xgft:2;24,24;1,12": "2:1",
    "xgft:3;12,12,12;1,12,6": "2:1",
    "xgft:2;24,24;1,8": "3:1",
    "xgft:3;12,12,12;1,12,12 - 60 cables": "damaged",
    "xgft:2;24,24;1,24 - 20 cables": "damaged",
    "dgx-ndr": "real, rails",
    "small-2014": "real",
    "psmn-x5": "real",
    "selene-storage": "real",
    "director-notabs": "real",
}
USUAL = ("mix:1", "mix:1,placed=tree", "blocks")
"""The mixes of each fabric."""
FULL = (*USUAL, "mix:2", "mix:2,placed=tree")
"""Those of a run with `--full`, …"""
MORE = {"xgft:2;24,24;1,8": tuple(f"mix:{seed},placed=tree" for seed in (3, 7, 8))}
"""… and some in which rings that are apart cost other collectives up to 11 % (`always_apart`)."""
SPIKE = {
    "xgft:2;24,24;1,24": (0.79, 0.71, 0.71, 0.74, 0.58),
    "xgft:2;24,24;1,8": (0.86, 0.79, 0.78, 0.80, 0.79),
    "xgft:3;12,12,12;1,12,12": (0.79, 0.71, 0.71, 0.73, 0.54),
    "xgft:3;12,12,12;1,12,6": (0.82, 0.74, 0.74, 0.75, 0.64),
    "xgft:3;12,12,12;1,12,12 - 60 cables": (0.79, 0.72, 0.72, 0.73, 0.56),
}
SPIKE_WORDS = (PAIRWISE, "recursive-doubling", "bruck", "halo2d", AT_ONCE)
"""What searched tables reached on scattered jobs (means of six other mixes, by a measure that
counts the mean of other jobs over all of their phases), and how far above these ours may be."""
NEAR = 0.02
WORST_JOB = 1.05
SLOWER, SAMPLED = 1.002, 1.02
"""Times as long as on the better template: slower, and in a collective whose phases are sampled."""
OLD = """
import json, sys, time, numpy as np
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.model import JobMix, make_job
from sar_agent.routing import Options, load_engine
for line in sys.stdin:
    given = json.loads(line)
    fabric = load_fabric(given["fabric"]).with_links_down(given["down"])
    mix = JobMix.of([make_job(str(k), job) for k, job in enumerate(given["jobs"])])
    begin = time.process_time()
    egress = load_engine("sar-plus").route(fabric, mix, Options()).egress[0]
    np.save(given["out"], egress)
    print(time.process_time() - begin, flush=True)
"""


class EarlierEngine:
    """sar-plus of `BEFORE` in a process of its own."""

    def __init__(self) -> None:
        tree = Path(f"out/before-{BEFORE}").resolve()
        if not tree.exists():
            command = ["git", "worktree", "add", "--detach", "-f", str(tree), BEFORE]
            subprocess.run(command, check=True, capture_output=True)
        self.folder = TemporaryDirectory()
        environment = os.environ | {"PYTHONPATH": str(tree)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", OLD], cwd=tree, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def route(self, spec: str, down: list[int], mix: JobMix) -> tuple[U8, float]:
        """(tables of offset 0, CPU seconds)."""
        out = Path(self.folder.name, "egress.npy")
        jobs = [job.terminals.tolist() for job in mix.jobs]
        given = {"fabric": spec, "down": down, "jobs": jobs, "out": str(out)}
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(given) + "\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        return np.load(out), seconds

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


class Measured(NamedTuple):
    """One engine on one row."""

    contention: F64
    """float64[P, J]"""
    off: int
    seconds: float

    @property
    def times(self) -> F64:
        """float64[P]: means over jobs."""
        times: F64 = self.contention.mean(axis=1)
        return times


def _measured(fabric: Fabric, mix: JobMix, egress: U8, seconds: float) -> Measured:
    each = [
        _at_once(fabric, mix, egress)
        if word == AT_ONCE
        else collective_contention(fabric, mix, egress, word)
        for word in COLLECTIVES
    ]
    off = int(np.count_nonzero(nearest_template(fabric, egress).egress != egress))
    return Measured(np.array(each), off, seconds)


def _at_once(fabric: Fabric, mix: JobMix, egress: U8) -> F64:
    """float64[J]: the largest load on the job's channels, at least 1."""
    loads: JobLoads = loads_on(template_of(fabric), mix, "load", egress)
    return loads.peaks(egress)


def _row_fabric(name: str) -> tuple[str, Fabric, list[int]]:
    spec, _, cut = name.partition(" - ")
    fabric = fabric_of(spec)
    down: list[int] = []
    if cut:
        cables = np.flatnonzero(np.arange(fabric.channels) < fabric.channel_reverse)
        chosen = np.random.default_rng(5).choice(cables, int(cut.split()[0]), replace=False)
        down = chosen.tolist()
    return fabric.name if not spec.startswith("xgft") else spec, fabric.with_links_down(down), down


def bench_mix(fabric: Fabric, name: str) -> JobMix:
    if name != "blocks":
        return mix_of_spec(name, fabric)
    sizes, left = [], sum(map(len, hosts_by_leaf(fabric).values()))
    random = np.random.default_rng(1)
    while left > 2:
        sizes.append(int(min(left, np.exp(random.uniform(np.log(2), np.log(64))))))
        left -= sizes[-1]
    return mix_of_spec("blocks:" + ",".join(map(str, sizes)), fabric)


def tables(full: bool) -> Iterator[Table]:
    """The goals, missed ones first; then the rows, those with a slower collective first."""
    only, earlier = os.environ.get("ONLY", ""), EarlierEngine()
    rows: list[Row] = []
    try:
        for name in KINDS:
            if not list(available([name.partition(" - ")[0]])):
                continue
            for mix_name in (*FULL, *MORE.get(name, ())) if full else USUAL:
                if only in f"{name} / {mix_name}":
                    found = _row(name, mix_name, earlier)
                    rows += found
                    for row in found:
                        print(*list(row.cells())[1], flush=True)
    finally:
        earlier.close()
    heads = ("goal", "measured", "at most", "")
    goals = Table("Collectives: goals, missed ones first", heads, "")
    for one in sorted(_goals(rows), key=lambda goal: goal.reached):
        reached = "reached" if one.reached else "NOT reached"
        goals.add(one.what, f"{one.measured:.3g}", f"{one.limit:g}", reached)
    yield goals
    columns = (
        "row",
        "engine",
        *WORDS,
        "ring over bound",
        "jobs whose ring meets",
        "entries",
        "CPU s",
    )
    table = Table("Collectives: rows", columns, "Times over the better of ftree and dmodc.")
    for row in sorted(rows, key=lambda each: -len(each.slower())):
        for line in row.cells():
            table.add(*line)
    yield table


class Row(NamedTuple):
    """A fabric and a mix."""

    fabric: str
    mix: str
    now: Measured
    then: Measured
    usual: Measured
    """In each collective the better of the tables without jobs."""
    bound: float
    """What the cabling forces on the slowest ring."""

    @property
    def kind(self) -> str:
        return f"{KINDS[self.fabric]}, {self.placement}"

    @property
    def placement(self) -> str:
        if self.mix == "blocks":
            return "consecutive"
        return "placed" if "placed" in self.mix else "scattered"

    @property
    def ratios(self) -> F64:
        """float64[P]"""
        ratios: F64 = self.now.times / self.usual.times
        return ratios

    def over_bound(self, each: Measured) -> float:
        """The slowest ring over what the cabling forces on it."""
        return float(each.contention[WORDS.index(RING)].max()) / self.bound

    def slower(self) -> list[str]:
        """The collectives that take longer than on the better template."""
        return [
            f"{word} {ratio:.3f}"
            for word, ratio in zip(WORDS, self.ratios, strict=True)
            if ratio > (SAMPLED if word == PAIRWISE else SLOWER)
        ]

    def cells(self) -> Iterator[tuple[str, ...]]:
        for engine, each in (("before", self.then), ("now", self.now)):
            ratios = (f"{ratio:.3f}" for ratio in each.times / self.usual.times)
            meets = f"{_meets(each):.0%}"
            name, bound = f"{self.fabric} / {self.mix}", f"{self.over_bound(each):.2f}"
            yield name, engine, *ratios, bound, meets, str(each.off), f"{each.seconds:.2f}"


def _meets(each: Measured) -> float:
    """The share of jobs whose ring meets another message."""
    return float(np.mean(each.contention[WORDS.index(RING)] > MEETS))


def _row(name: str, mix_name: str, earlier: EarlierEngine) -> list[Row]:
    """Empty where all jobs are on one switch."""
    spec, fabric, down = _row_fabric(name)
    mix = bench_mix(fabric, mix_name)
    if not mix.jobs:
        return []
    begin = time.process_time()
    egress = load_engine("sar-plus").route(fabric, mix, Options()).egress[0]
    now = _measured(fabric, mix, egress, time.process_time() - begin)
    then = _measured(fabric, mix, *earlier.route(spec, down, mix))
    plain: list[Measured] = []
    for engine in ("ftree", "dmodc", "dfsssp"):
        try:
            tables = load_engine(engine).route(fabric, mix, Options()).egress[0]
        except SarError:
            continue
        if engine != "dfsssp" or not plain:
            plain.append(_measured(fabric, mix, tables, 0.0))
    times = np.array([each.times for each in plain])
    best = times.argmin(axis=0)
    usual = np.array([plain[k].contention[p] for p, k in enumerate(best)])
    bound = contention_bounds(fabric, mix, RING).worst
    if len(np.unique(fabric.channel_rate)) == 1:
        bound = ceil(bound - 1e-9)  # whole messages
    return [Row(name, mix_name, now, then, Measured(usual, 0, 0.0), bound)]


class Goal(NamedTuple):
    what: str
    measured: float
    limit: float

    @property
    def reached(self) -> bool:
        return self.measured <= self.limit + 1e-9


def _goals(rows: list[Row]) -> Iterator[Goal]:
    kinds: dict[str, list[Row]] = defaultdict(list)
    scattered: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row.kind].append(row)
        if row.fabric in SPIKE and row.placement == "scattered":
            scattered[row.fabric].append(row)
    for kind, some in kinds.items():
        many = geometric_mean([max(1, row.now.off) / max(1, row.then.off) for row in some])
        yield Goal(f"{kind}: entries over before", many, 3 if "scattered" in kind else 1.5)
        if kind.startswith("full"):
            share = fmean(_meets(row.now) for row in some)
            yield Goal(f"{kind}: share of jobs whose ring meets", share, 0)
        else:
            over = fmean(row.over_bound(row.now) for row in some)
            yield Goal(f"{kind}: slowest ring over its bound", over, 1.05)
    for fabric, some in scattered.items():
        for word, searched in zip(SPIKE_WORDS, SPIKE[fabric], strict=True):
            mean = geometric_mean([float(row.ratios[WORDS.index(word)]) for row in some])
            yield Goal(f"{fabric}, scattered: {word}", mean, round(searched + NEAR, 2))
    cells = len(rows) * len(WORDS)
    slower = [f"{row.fabric} / {row.mix}: {', '.join(s)}" for row in rows if (s := row.slower())]
    what = f"rows of {len(rows)} in which a collective takes longer than on the better template"
    yield Goal(f"{what} ({cells} cells; {'; '.join(slower) or 'none'})", len(slower), 0)
    yield from _worst_jobs(rows)


def _worst_jobs(rows: Iterable[Row]) -> Iterator[Goal]:
    worst = [
        (float(ratio), f"{row.fabric} / {row.mix}, {word}")
        for row in rows
        for word, ratio in zip(
            WORDS, row.now.contention.max(axis=1) / row.usual.contention.max(axis=1), strict=True
        )
    ]
    if worst:
        ratio, where = max(worst)
        above = f"{sum(ratio > WORST_JOB for ratio, _ in worst)} of {len(worst)} cells are above"
        what = f"worst job of a row over that of the better template ({where}; {above})"
        yield Goal(what, ratio, WORST_JOB)
