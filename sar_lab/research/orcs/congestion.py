"""ORCS's metrics over many runs.

| metric | a run's value |
|---|---|
| `sum_max_cong` | the most messages on one link, summed over the levels |
| `hist_max_cong` | no value; a histogram over all messages of all runs: the most messages on a
link of the message's route |
| `hist_acc_band` | the mean over the messages of 1 / that number: the share of full bandwidth |
| `dep_max_delay` | the longest chain of such numbers among the first k ranks (`runs.py`) |
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32
from sar_lab.research.orcs.level_schedule import Schedule
from sar_lab.research.orcs.network import Network
from sar_lab.research.orcs.ranks import blocks_of, draw, no_route, set_aside
from sar_lab.research.orcs.runs import F64, I64, Counts, count_runs

METRICS = ("sum_max_cong", "hist_max_cong", "hist_acc_band", "dep_max_delay")
BATCH = 256
"""Runs with one stream of random numbers, so that results do not depend on the threads."""
BIN, BINS, HIGHEST = 0.05, 20, 1.01
"""ORCS's histogram of bandwidths: 20 bins from 0 to 1.01."""


@dataclass(frozen=True)
class Congestion:
    """The values of one metric for one schedule."""

    metric: str
    schedule: Schedule
    runs: int
    seed: int
    values: I64 | F64
    """[R], one value for each run; for `hist_max_cong` the congestions that occur, ascending."""
    times: I64
    """int64[R]: how often each value occurs; 1 except for `hist_max_cong`."""

    def json(self) -> dict[str, Any]:
        """`min`, `avg`, `max`, `variance`, `median`, `counts`; null without any message."""
        summary: dict[str, Any] = {
            "metric": self.metric,
            "pattern": self.schedule.pattern,
            "ranks": self.schedule.ranks,
            "first": self.schedule.first,
            "runs": self.runs,
            "seed": self.seed,
        }
        good = ~np.isnan(self.values) & (self.times > 0)
        values, times = self.values[good], self.times[good]
        if not len(values):
            return summary | dict.fromkeys(("min", "avg", "max", "variance", "median"))
        mean = float(np.average(values, weights=times))
        order = np.argsort(values, kind="stable")
        half = np.searchsorted(np.cumsum(times[order]), times.sum() / 2)
        summary |= {
            "min": values.min().item(),
            "avg": mean,
            "max": values.max().item(),
            "variance": float(np.average((values - mean) ** 2, weights=times)),
            "median": values[order][half].item(),
        }
        if self.metric == "hist_acc_band":
            each, _ = np.histogram(values, BINS, (0, HIGHEST))
            summary["histogram"] = each.tolist()
            return summary
        kinds, place = np.unique(values, return_inverse=True)
        number = np.bincount(place, times).astype(np.int64)
        summary["counts"] = dict(zip(map(str, kinds.tolist()), number.tolist(), strict=True))
        if self.metric == "hist_max_cong":
            summary["bandwidth"] = float(np.average(1 / values, weights=times))
        return summary


def simulate(
    network: Network,
    schedule: Schedule,
    metric: str,
    *,
    runs: int = 1,
    seed: int = 0,
    order: I32 | None = None,
    group: I32 | None = None,
) -> Congestion:
    """`order`: the hosts of the first ranks, in this order, in all runs; the other ranks are drawn
    for each run. `group`: the hosts of the first group, whose ranks are drawn among them; `order`
    is then part of it. Raises `InputError` for an unknown metric or a group of another size, and
    `CheckFailed` where a route does not reach its destination."""
    if metric not in METRICS:
        raise InputError(f"no metric is called {metric!r}", remedy=f"one of {', '.join(METRICS)}")
    blocks = blocks_of(network, schedule, order, group)
    if not len(schedule.drawn) and all(fixed for _, fixed in blocks):
        runs = 1  # all runs would be the same
    asked, background = schedule, np.zeros(len(network.head), np.uint32)
    if metric == "dep_max_delay" and (simpler := set_aside(network, schedule, blocks)):
        schedule, background = simpler
    sizes = [min(BATCH, runs - start) for start in range(0, runs, BATCH)]
    seeds = np.random.SeedSequence(seed).spawn(len(sizes))
    most = int(background.max(initial=0)) + int(np.diff(schedule.level).max(initial=0))

    def some(size: int, stream: np.random.SeedSequence) -> Counts:
        random = np.random.default_rng(stream)
        counts = Counts(
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros(most + 1, np.int64),
        )
        hosts = draw(blocks, schedule.ranks, size, random)
        chance = random.random((size, int(schedule.drawn[:, 1].sum())))
        bad = count_runs(
            *network[2:], background, *schedule[3:], schedule.first, hosts, chance,
            metric != "dep_max_delay", counts,
        )  # fmt: skip
        if bad >= 0:
            raise no_route(network, *divmod(bad, len(network.guid)))
        return counts

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(some, sizes, seeds))
    if metric == "hist_max_cong":
        pairs = np.sum([part.pairs for part in parts], axis=0)
        kinds = np.flatnonzero(pairs)
        return Congestion(metric, asked, runs, seed, kinds, pairs[kinds])
    name = {"sum_max_cong": 1, "hist_acc_band": 2, "dep_max_delay": 0}[metric]
    values = np.concatenate([part[name] for part in parts])
    return Congestion(metric, asked, runs, seed, values, np.ones(runs, np.int64))
