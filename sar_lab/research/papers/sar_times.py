"""SAR, Sections 4.3.1 and 4.3.3: times of the filter tool and of tables, as far as they compare.

The paper's times are of a production system's Slurm and switches: class N. Measured here is our own
part of a poll, on a month of the Taurus stand-in: parse what squeue prints, find jobs on several
switches, compare with the poll before. What Slurm's controller takes to answer is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.filter import host_sets, job_change, multi_switch
from sar_agent.slurm.squeue_text import parse_squeue_pipe
from sar_lab.history import place_history
from sar_lab.mixes.synthetic_histories import BEGIN, synthetic_history
from sar_lab.research.papers.history_marks import DAY
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.published import quotes
from sar_lab.research.recorded_update import recorded_update

SAID = quotes("sar-times")
DAYS = 30
EVERY = 300.0
"""Seconds between two runs of the tool."""
MEAN, LEAST, MOST_SHARE, LIMIT = 16.0, 0.02, 99.1, 120.0
F64 = NDArray[np.float64]


def sar_times(seeds: Sequence[int]) -> Outcome:
    """A month of polls, one after the other."""
    seconds = np.concatenate([poll_seconds(seed) for seed in seeds])
    mean = float(seconds.mean())
    tables = recorded_update().seconds["install"]
    rows = [
        ["mean of a run", f"{MEAN:g} s", f"{1e3 * mean:.2f} ms of our own work"],
        ["least", f"{LEAST:g} s", f"{1e3 * seconds.min():.2f} ms"],
        ["most", "above 10 min, three times", f"{1e3 * seconds.max():.2f} ms"],
        [
            f"runs below {LIMIT:g} s",
            f"{MOST_SHARE:g} %",
            f"{100 * float((seconds < LIMIT).mean()):g} %",
        ],
        ["tables sent and confirmed", "0.8 s, 210 switches",
         f"{tables:.2f} s, the 2 switches of sar-fig6"],
    ]  # fmt: skip
    return Outcome(
        [],
        words={"polls": len(seconds)},
        tables=[ResultTable(["", "published", "ours"], rows)],
        draw=lambda figure: _draw(figure, seconds),
    )


def poll_seconds(seed: int) -> F64:
    """float64[N]: what each poll of a month takes us."""
    fabric = load_fabric("standin:taurus")
    history = synthetic_history(f"synthetic:taurus,seed={seed},days={DAYS}")
    placed = place_history(history, fabric)
    leaf = {
        host: {int(fabric.terminal_switch[t])}
        for t, host in enumerate(fabric.terminal_host)
        if host
    }
    jobs = [
        (start, end, f"{n}|RUNNING|{_hosts(fabric.terminal_host, job.terminals)}"
                     f"|batch|root|(null)|{len(job.terminals)}|{int(start)}|job\n")
        for n, (parts, start, end) in enumerate(
            zip(placed.parts, history.start, history.end, strict=True), 1)
        for job in parts
    ]  # fmt: skip
    starts, ends = (np.array([job[k] for job in jobs]) for k in (0, 1))
    before, found = host_sets([]), []
    for now in np.arange(BEGIN, BEGIN + DAYS * DAY, EVERY):
        text = "".join(jobs[n][2] for n in np.flatnonzero((starts <= now) & (ends > now)))
        began = time.perf_counter()
        some = multi_switch(parse_squeue_pipe(text), leaf.get).jobs
        if job_change(before, some):
            before = host_sets(some)
        found.append(time.perf_counter() - began)
    return np.array(found)


def _hosts(name: Sequence[str], terminals: Iterable[int]) -> str:
    return ",".join(sorted({name[t] for t in terminals}))


def _draw(figure: Figure, seconds: F64) -> None:
    """The share of polls that took longer; what the paper prints is text, as it has squeue in it
    and would leave four decades empty."""
    axes = figure.subplots()
    longer = 1 - np.arange(len(seconds)) / len(seconds)
    axes.step(1e3 * np.sort(seconds), longer, color="#4477aa", where="post")
    axes.set(xscale="log", yscale="log", xlabel="ms of our own part of a poll",
             ylabel="share of polls that took longer")  # fmt: skip
    axes.set_title(
        f"n = {len(seconds):,} polls. Published, with squeue: mean {MEAN:g} s, least {LEAST:g} s, "
        f"{MOST_SHARE:g} % below {LIMIT:g} s",
        fontsize="small",
    )
