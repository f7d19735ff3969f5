"""Collectives on our tables: over the better of ftree and dmodc, and beside an earlier engine.

Each row is a fabric and a mix. "Before" is sar-plus of commit `BEFORE`, from a git worktree that
the benchmark makes, on the same fabric and jobs. Contention is that of `quality/`. `--only TEXT`
(in the environment variable `ONLY`) takes rows whose name contains the text.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, geometric_mean
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, RING
from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8
from sar_agent.jobs import JobMix
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.quality.measures import MEETS
from sar_agent.routing import Options, load_engine
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.template import loads_on, nearest_template, template_of
from tests.bench.bench_fabrics import available, fabric_of
from tests.bench.table import Table, goal

BEFORE = "2503915c"
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
MIXES = ("mix:1", "mix:2", "mix:1,placed=tree", "mix:2,placed=tree", "blocks")
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
        self.folder = Path(mkdtemp(prefix="sar-before-"))
        tree = self.folder / "tree"
        command = ["git", "worktree", "add", "--detach", "-f", str(tree), BEFORE]
        subprocess.run(command, check=True, capture_output=True)
        environment = os.environ | {"PYTHONPATH": str(tree)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", OLD], cwd=tree, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def route(self, spec: str, down: list[int], mix: JobMix) -> tuple[U8, float]:
        """(tables of offset 0, CPU seconds)."""
        out = self.folder / "egress.npy"
        jobs = [job.terminals.tolist() for job in mix.jobs]
        given = {"fabric": spec, "down": down, "jobs": jobs, "out": str(out)}
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(given) + "\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        return np.load(out), seconds

    def close(self) -> None:
        """Ends the process and removes the worktree."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()
        tree = str(self.folder / "tree")
        subprocess.run(["git", "worktree", "remove", "--force", tree], check=False)


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


def _mix(fabric: Fabric, name: str) -> JobMix:
    if name != "blocks":
        return mix_of_spec(name, fabric)
    sizes, left = [], len(fabric.hosts)
    random = np.random.default_rng(1)
    while left > 2:
        sizes.append(int(min(left, np.exp(random.uniform(np.log(2), np.log(64))))))
        left -= sizes[-1]
    return mix_of_spec("blocks:" + ",".join(map(str, sizes)), fabric)


def tables(full: bool) -> Iterator[Table]:
    """The rows, and the goals, missed ones first."""
    only, earlier = os.environ.get("ONLY", ""), EarlierEngine()
    words = list(COLLECTIVES)
    columns = ("row", "engine", *words, "jobs whose ring meets", "entries", "CPU s")
    table = Table("Collectives", columns, "Times over the better of ftree and dmodc.")
    ours: dict[str, list[tuple[Measured, Measured, Measured]]] = {}
    try:
        for name, kind in KINDS.items():
            if not list(available([name.partition(" - ")[0]])):
                continue
            for mix_name in MIXES if full else MIXES[::2]:
                row = f"{name} / {mix_name}"
                if only not in row:
                    continue
                found = _row(name, mix_name, earlier)
                if found is None:
                    continue
                now, then, usual = found
                ours.setdefault(f"{kind}, {mix_name.partition(',')[2] or mix_name[:3]}", []).append(
                    found
                )
                for engine, each in (("before", then), ("now", now)):
                    ratio = each.times / usual.times
                    meets = float(np.mean(each.contention[words.index(RING)] > MEETS))
                    table.add(row, engine, *(f"{x:.3f}" for x in ratio), f"{meets:.0%}",
                              str(each.off), f"{each.seconds:.2f}")  # fmt: skip
                print(table.text().splitlines()[-2], table.text().splitlines()[-1], sep="\n")
    finally:
        earlier.close()
    table.goals = sorted(_goals(ours, words), key=lambda sentence: "NOT" not in sentence)
    yield table


def _row(
    name: str, mix_name: str, earlier: EarlierEngine
) -> tuple[Measured, Measured, Measured] | None:
    spec, fabric, down = _row_fabric(name)
    mix = _mix(fabric, mix_name)
    if not mix.jobs:
        return None
    begin = time.process_time()
    egress = load_engine("sar-plus").route(fabric, mix, Options()).egress[0]
    now = _measured(fabric, mix, egress, time.process_time() - begin)
    then = _measured(fabric, mix, *earlier.route(spec, down, mix))
    plain = []
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
    return now, then, Measured(usual, 0, 0.0)


def _goals(
    found: dict[str, list[tuple[Measured, Measured, Measured]]], words: list[str]
) -> Iterator[str]:
    ring = words.index(RING)
    slower = rows = 0
    worst = 0.0
    for kind, each in found.items():
        ratios = np.array([now.times / usual.times for now, _, usual in each])
        slower += int((ratios > 1.002).sum())
        rows += ratios.size
        worst = max(
            worst,
            *(
                float((now.contention.max(axis=1) / usual.contention.max(axis=1)).max())
                for now, _, usual in each
            ),
        )
        means = " ".join(
            f"{word} {geometric_mean(ratios[:, p]):.2f}" for p, word in enumerate(words)
        )
        entries = geometric_mean([max(1, now.off) / max(1, then.off) for now, then, _ in each])
        yield f"{kind}: {means}"
        yield goal(f"{kind}: entries over before", entries, 1.5 if "placed" in kind else 3, "")
        if kind.startswith("full"):
            share = fmean(float(np.mean(now.contention[ring] > MEETS)) for now, _, _ in each)
            yield goal(f"{kind}: share of jobs whose ring meets", share, 0, "")
    yield goal(f"rows in which a collective is slower, of {rows}", slower, 0, "")
    yield goal("worst job of a row over that of the better template", worst, 1.05, "")
