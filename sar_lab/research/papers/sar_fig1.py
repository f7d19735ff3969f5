"""SAR, Fig. 1: the nodes of multi-switch jobs over a month, on both machines' stand-ins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric.spec import load_fabric
from sar_lab.history import place_history
from sar_lab.history.job_history import F64
from sar_lab.mixes.synthetic_histories import BEGIN, synthetic_history
from sar_lab.research.papers.history_marks import DAY, Marks, marks_of
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.sar_months import SYSTEMS
from sar_lab.research.statistics import median_of

SAID = quotes("sar-fig1")
DAYS = 30
EVERY = 600.0
"""Seconds between samples, as in the paper."""
LEAST_SHARE = {"taurus": 66, "tsubame": 50}


def sar_fig1(seeds: Sequence[int]) -> Outcome:
    """The histories that sar-table1 and sar-fig7 replay."""
    found = {system: [_month(system, seed) for seed in seeds] for system in SYSTEMS}
    rows = []
    for system, name in SYSTEMS.items():
        marks = [each for each, _ in found[system]]
        busy = [100 * float(nodes.mean()) for _, nodes in found[system]]
        rows.append(
            [
                name,
                f"> {LEAST_SHARE[system]}",
                median_of([100 * each.multi_switch_share for each in marks]).words(1),
                median_of([each.hosts_per_job for each in marks]).words(1),
                median_of([each.leaves_per_job for each in marks]).words(1),
                median_of(busy).words(1),
            ]
        )
    head = ["stand-in", "published: multi-switch jobs, %", "ours", "hosts of such a job",
            "its leaf switches", "nodes in such jobs, %"]  # fmt: skip
    return Outcome(
        [],
        tables=[ResultTable(head, rows)],
        draw=lambda figure: _draw(figure, {s: [n for _, n in found[s]] for s in SYSTEMS}),
    )


def _month(system: str, seed: int) -> tuple[Marks, F64]:
    """The marks of a history, and float64[samples]: the share of nodes in multi-switch jobs."""
    fabric = load_fabric(f"standin:{system}")
    history = synthetic_history(f"synthetic:{system},seed={seed},days={DAYS}")
    placed = place_history(history, fabric)
    at = np.arange(BEGIN, BEGIN + DAYS * DAY, EVERY)
    change = np.zeros(len(at) + 1)
    for parts, start, end in zip(placed.parts, history.start, history.end, strict=True):
        for job in parts:
            first, last = np.searchsorted(at, [start, end])
            change[first] += len(job.terminals)
            change[last] -= len(job.terminals)
    nodes: F64 = change.cumsum()[:-1] / fabric.terminals
    return marks_of(fabric, history, BEGIN, BEGIN + DAYS * DAY), nodes


def _draw(figure: Figure, nodes: dict[str, list[F64]]) -> None:
    for axes, (system, draws) in zip(
        figure.subplots(2, 1, sharex=True), nodes.items(), strict=True
    ):
        days = np.arange(len(draws[0])) * EVERY / DAY
        low, high = 100 * np.min(draws, axis=0), 100 * np.max(draws, axis=0)
        axes.fill_between(days, low, high, color="#4477aa", alpha=0.2, lw=0,
                          label=f"least and most of n = {len(draws)} seeds")  # fmt: skip
        axes.plot(days, 100 * draws[0], color="#4477aa", lw=0.8, label="the first seed")
        axes.set(title=f"{SYSTEMS[system]} stand-in, synthetic jobs", ylim=(0, 100))
        axes.set_ylabel("nodes in multi-\nswitch jobs, %")
    figure.axes[-1].set_xlabel("day")
    figure.axes[0].legend(fontsize="small", loc="lower right")
