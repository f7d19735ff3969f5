"""What the cabling forces in a collective, by whatever tables: lower bounds of its contention.

What leaves or enters a leaf switch, or a piece of the fabric below a level, shares the channels
there. A job's own messages alone take as long as their share of that cut, so the bound of a job
holds for it by all tables. Other jobs' messages may be kept away from the job's, at the cost of
these others: all messages over the cut bound the slowest job, not each of them. They are at the cut
together where each job has one phase, as in a ring; with several phases only the jobs' own bounds
are known here.

The bounds hold for tables that reach every destination (those that lead nowhere end before the
cut), for any number of hops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import components_below
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import F64, I64
from sar_agent.jobs import JobMix
from sar_agent.quality.collective_contention import moment_messages


class ContentionBounds(NamedTuple):
    """Of one collective, at least 1."""

    each: F64
    """float64[J]: of the contention of each job."""
    worst: float
    """Of that of the slowest job."""


def contention_bounds(fabric: Fabric, mix: JobMix, collective: str) -> ContentionBounds:
    """The bounds in a key of `COLLECTIVES` but for all messages at once, over the same moments as
    `collective_contention`."""
    messages = moment_messages(fabric, mix.jobs, collective)
    alone = np.ones(len(messages.weight) + 1)
    worst = 1.0
    if not len(messages.source):
        return ContentionBounds(np.ones(len(mix.jobs)), worst)
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    speed = port_demand(fabric, mix) / weight
    job = np.zeros(len(alone), np.int64)
    job[messages.at] = np.arange(len(mix.jobs))[:, np.newaxis]
    phase = np.repeat(np.arange(len(messages.weight)), np.diff(messages.first))
    for piece in _pieces(fabric):
        source, destination = (
            piece[fabric.terminal_switch[ends]] for ends in (messages.source, messages.destination)
        )
        crosses = source != destination
        for rate, side in zip(_cut_rates(fabric, piece), (source, destination), strict=True):
            both = phase[crosses] * np.int64(fabric.switches) + side[crosses]
            found, count = np.unique(both, return_counts=True)
            of, where = np.divmod(found, fabric.switches)
            live = rate[where] > 0.0
            of, where = of[live], where[live]
            share = count[live] * messages.weight[of] * speed[job[of]] / rate[where]
            np.maximum.at(alone, of, share)
            if len(messages.at) == 1:
                # A job counts its own messages once, those of others times their weights.
                all_jobs = np.bincount(where, share * np.minimum(1.0, weight[job[of]]))
                worst = max(worst, float(all_jobs.max(initial=1.0)))
    each: F64 = alone[messages.at[:, :, 0]].mean(axis=0)
    return ContentionBounds(each, max(worst, float(each.max(initial=1.0))))


def _pieces(fabric: Fabric) -> list[I64]:
    """int64[S] each, the piece of every switch: the switches themselves, and what remains when
    upper levels are removed (`cuts.py`)."""
    level = levels_of(fabric)
    below = (components_below(fabric, level, top) for top in range(level.max(initial=0)))
    return [np.arange(fabric.switches), *(piece.astype(np.int64) for piece in below)]


def _cut_rates(fabric: Fabric, piece: I64) -> tuple[F64, F64]:
    """(what leaves float64[S], what enters float64[S]) each piece, in Gbit/s."""
    source, target = piece[fabric.channel_source], piece[fabric.channel_target]
    cut = fabric.channel_up & (source != target)
    rate = fabric.channel_rate[cut].astype(np.float64)
    leaves, enters = (np.bincount(side[cut], rate, fabric.switches) for side in (source, target))
    return leaves.astype(np.float64), enters.astype(np.float64)
