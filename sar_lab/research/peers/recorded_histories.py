"""Table 1, Fig. 7 and the reroutes a day of sar-2016 on recorded jobs ($SAR_DATA).

Leonardo's records have the nodes of each job, and its list the leaf switch of each node; the cables
between switches are made up. A log of sacct from 2016 has nodes of a machine whose switches nobody
published, so only the sizes and times of its jobs are used: Slurm's rule for trees places them on a
tree of ours. Every number says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.tree_placement import TreePlacement
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from sar_lab.history import HistoryBuilder, JobHistory, read_history
from sar_lab.replay.chain import CachedEngine
from sar_lab.replay.samples import samples_of
from sar_lab.research.papers.claims import more
from sar_lab.research.papers.history_marks import DAY, marks_of
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.peers.site_inputs import WITHOUT, leonardo, site_folder

TREE = "xgft:2;18,{};1,9"
"""18 hosts and 9 ways up a leaf switch, for as many hosts as a log names."""
EVERY, SKIPPED = 4 * 3600.0, 12 * 3600.0
"""Seconds between moments; those at the beginning, when the records do not know what ran before."""
ENGINES = ("dfsssp", "updn", "sar", "sar-plus")
METRICS = {
    "effective_efi_max": "max gamma^e",
    "load_max": "largest load",
    "dark_fiber_ratio": "theta",
}


class Recorded(NamedTuple):
    """One machine."""

    jobs: int
    multi_switch: float
    """Their share on several leaf switches."""
    changes: list[int]
    """Polls of each whole day that found other multi-switch jobs."""
    drawn: dict[str, dict[str, list[float]]]
    """Engine → metric → its value at each moment."""


def recorded_histories(seeds: Sequence[int]) -> Outcome:
    """All machines that $SAR_DATA has."""
    found = machines()
    claims = [
        more(f"{name}: sar's {METRICS[metric]} below {other}'s",
             each.drawn[other][metric], each.drawn["sar"][metric])
        for name, each in found.items()
        if each.multi_switch
        for other in ENGINES[:2]
        for metric in ("effective_efi_max", "load_max")
    ]  # fmt: skip
    days = [
        [
            name,
            str(each.jobs),
            f"{each.multi_switch:.0%}",
            ", ".join(map(str, each.changes)),
            f"{np.mean(each.changes):.1f}" if each.changes else "–",
        ]
        for name, each in found.items()
    ]
    means = [
        [name, metric, *(f"{np.mean(each.drawn[engine][key]):.3g}" for engine in ENGINES)]
        for name, each in found.items()
        if each.multi_switch
        for key, metric in METRICS.items()
    ]
    return Outcome(
        claims,
        [
            ResultTable(["records", "jobs", "on several switches", "changes by day", "mean"], days),
            ResultTable(["mean over moments", "measure", *ENGINES], means),
        ],
        words={"without": "" if found else WITHOUT},
    )


@measured
def machines() -> dict[str, Recorded]:
    """By name; none without $SAR_DATA."""
    folder = site_folder()
    found: dict[str, Recorded] = {}
    if folder and (both := leonardo(folder)):
        found["Leonardo (nodes recorded, cables made up)"] = recorded(*both)
    if folder and (log := folder / "sacct-2016.log").exists():
        history = read_history(log)
        fabric = load_fabric(TREE.format(-(-len(history.hosts) // 18)))
        found["sacct 2016 (sizes only, placed by Slurm's rule)"] = recorded(
            fabric, placed_on_tree(history, fabric)
        )
    return found


def placed_on_tree(history: JobHistory, fabric: Fabric) -> JobHistory:
    """The same jobs at the same times on nodes that Slurm's rule gives; a job that does not fit in
    when it starts is left out."""
    tree, running = TreePlacement(fabric), dict[int, list[str]]()
    builder = HistoryBuilder(f"{history.name}, on {fabric.name}")
    room = len(fabric.job_ports)
    events = sorted(
        [(at, 1, job) for job, at in enumerate(history.start)]
        + [(at, 0, job) for job, at in enumerate(history.end)]
    )
    for at, starts, job in events:
        size = int(history.size[job])
        if not starts and job in running:
            hosts = running.pop(job)
            tree.end(hosts)
            room += len(hosts)
            builder.add(history.ids[job], float(history.start[job]), float(at), hosts)
        elif starts and history.end[job] > at and size <= room:
            running[job] = tree.start(size)
            room -= size
    return builder.build()


def recorded(fabric: Fabric, history: JobHistory) -> Recorded:
    """What the jobs do, and the measures of every engine at moments."""
    begin, end = history.span
    begin += SKIPPED
    marks = marks_of(fabric, history, begin, begin + (end - begin) // DAY * DAY)
    mixes: list[JobMix] = []
    if marks.multi_switch_share:
        samples = samples_of(fabric, history, EVERY, begin)
        mixes = [samples.mix(int(state)) for state in np.unique(samples.state)]
    engines = {name: CachedEngine(load_engine(name)) for name in ENGINES}
    drawn: dict[str, dict[str, list[float]]] = {e: {m: [] for m in METRICS} for e in ENGINES}
    for mix in (mix for mix in mixes if mix.jobs):
        for name, engine in engines.items():
            found = measure(fabric, mix, engine.route(fabric, mix, Options()))
            for metric in METRICS:
                drawn[name][metric].append(float(getattr(found, metric)))
    return Recorded(marks.jobs, marks.multi_switch_share, list(marks.changes_per_day), drawn)
