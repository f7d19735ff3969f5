"""The time to replay a year of jobs at 11,664 hosts, and how well more workers of Dask are used."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from sar_agent.fabric.spec import load_fabric
from sar_lab.mixes.lublin import Workload
from sar_lab.mixes.node_selection import first_fit
from sar_lab.mixes.synthetic_histories import MACHINES, Machine, synthetic_history
from tests.bench.bench_fabrics import LARGEST, size_of
from tests.bench.table import Table, goal
from tests.worlds.dask_workers import dask

EVERY = 60
"""Minutes between two moments."""
PIECE = 21
"""Moments of a piece of the week, which has 168."""
ENGINE = "sar-plus"
ONE_CORE = ("taskset", "-c", "0")
PYTHON = [sys.executable, "-c", "from sar_agent.cli import main; main()"]


def tables(full: bool) -> Iterator[Table]:
    """A year with two workers, or four weeks; a week with one, two and more."""
    fabric = load_fabric(LARGEST)
    days = 365 if full else 28
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as name:
        folder = Path(name)
        long, jobs = written(folder / "long.csv", days, fabric.terminals)
        table = Table(
            f"Replay of {days} days, {size_of(fabric)}, two workers",
            ("jobs", "moments", "of them states", "seconds", "for each state, ms"),
            f"`{LARGEST}`, a synthetic history (first fit, jobs of up to 512 hosts, the model of "
            f"Lublin and Feitelson), a moment every {EVERY} minutes, `{ENGINE}`.",
        )
        seconds, moments, states = replayed(folder / "out", long, "--workers", "2")
        each = 2 * 1e3 * seconds / states
        table.add(f"{jobs:,}", f"{moments:,}", f"{states:,}", f"{seconds:.0f}", f"{each:.0f}")
        if full:
            table.goals.append(goal("a year", seconds / 60, 60, "min"))
        yield table
        written(folder / "week.csv", 7, fabric.terminals)
        table = Table(
            "A week of this on more workers",
            ("workers", "seconds", "times as fast as on one core", "of the cores used"),
            f"Pieces of {PIECE} moments, eight in all. *Of the cores used*: times as fast as one "
            "process on one core, divided by the cores that it could use, one or two. One process "
            "may use two, since it measures a plan beside its proof. All workers of Dask share the "
            "two cores with its scheduler.",
        )
        rows = [
            ("one process, one core", 1, week_in(folder, "--workers", "1", before=ONE_CORE)),
            ("one process", 2, week_in(folder, "--workers", "1")),
            ("two processes", 2, week_in(folder, "--workers", "2")),
        ]
        for workers in (2, 4, 8):
            with dask(folder / f"dask-{workers}", workers) as address:
                seconds = week_in(folder, "--dask", address)
            rows.append((f"Dask, {workers} workers", 2, seconds))
        for what, cores, seconds in rows:
            times = rows[0][2] / seconds
            table.add(what, f"{seconds:.0f}", f"{times:.2f}", f"{times / cores:.0%}")
        yield table


def week_in(folder: Path, *more: str, before: tuple[str, ...] = ()) -> float:
    """Seconds of the replay of `folder`'s week."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        words = (*more, "--chunk", str(PIECE))
        return replayed(Path(out), folder / "week.csv", *words, before=before)[0]


def written(path: Path, days: int, nodes: int) -> tuple[Path, int]:
    """A trace of so many days, and the number of its jobs."""
    machine = Machine(Workload(largest=512, gap_times=0.04), (nodes,), lambda random: first_fit)
    with patch.dict(MACHINES, {"bench": machine}):
        history = synthetic_history(f"synthetic:bench,seed=1,days={days}")
    lines = ["job,start,end,nodelist"]
    for job in range(history.jobs):
        hosts_of = (history.hosts[host] for host in history.hosts_of(job))
        names = NodeSet.fromlist(hosts_of, resolver=RESOLVER_NOGROUP)
        lines.append(f'{history.ids[job]},{history.start[job]},{history.end[job]},"{names}"')
    path.write_text("\n".join(lines) + "\n")
    return path, history.jobs


def replayed(
    out: Path, history: Path, *more: str, before: tuple[str, ...] = ()
) -> tuple[float, int, int]:
    """Seconds of the whole command, the number of moments, and of different states."""
    words = ["--fabric", LARGEST, "--history", str(history), "--engine", ENGINE]
    words += ["--every", str(EVERY), "--out", str(out), "--json"]
    began = time.perf_counter()
    done = subprocess.run(
        [*before, *PYTHON, "replay", *words, *more], capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    found = json.loads(done.stdout)
    return seconds, found["moments"], found["states"]
