"""Algorithm 1 of sar-2016 on a two-level tree, with one of its rules changed at a time.

On such a tree a route from a leaf switch to a host is the choice of a spine. Algorithm 1 takes the
spine with the least sum of weights, of the cable up and of the cable down, and adds a destination's
routes to the weights once all leaves have chosen: no leaf sees what another has just taken. Two
changes tell which rule makes routes meet: add the routes after each leaf's choice, and compare the
larger of the two weights instead of their sum.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.routing.sar import destination_order
from sar_agent.routing.weighted_trees import JOB
from sar_agent.util.kernels import kernel


def greedy_peak(
    fabric: Fabric, mix: JobMix, *, leaf_by_leaf: bool = False, larger: bool = False
) -> int:
    """The largest effective EFI of any cable between switches; with neither change, Algorithm 1's.
    Each host may run one job. Raises `InputError` where the fabric is no two-level tree with hosts
    on its leaf switches only, and `Unserved` where it is no XGFT."""
    view = recognise_xgft(fabric)
    if view.height != 2:
        raise InputError(f"{fabric.name} is no two-level tree")
    number = np.full(fabric.switches, -1, np.int64)
    number[fabric.leaves] = np.arange(len(fabric.leaves))
    leaf = number[fabric.terminal_switch]
    order, count = destination_order(fabric, mix)
    sources = np.zeros((len(mix.jobs), len(fabric.leaves)), np.int64)
    job_of = np.full(fabric.terminals, -1, np.int64)
    for j, job in enumerate(mix.jobs):
        np.add.at(sources[j], leaf[job.terminals], 1)
        job_of[job.terminals] = j
    chosen = order[(count == JOB) & (job_of[order] >= 0)].astype(np.int64)
    peak = _peak(job_of[chosen], leaf[chosen], sources, view.ncas, leaf_by_leaf, larger)
    return int(peak)


@kernel
def _peak(
    job: I64, leaf: I64, sources: I64, spines: int, leaf_by_leaf: bool, larger: bool
) -> np.int64:  # pragma: no cover
    leaves = np.uint32(sources.shape[1])
    up = np.zeros((leaves, np.uint32(spines)), np.int64)
    down = np.zeros((np.uint32(spines), leaves), np.int64)
    spine = np.zeros(leaves, np.uint32)
    for i in range(np.uint32(len(job))):
        j, to = np.uint32(job[i]), np.uint32(leaf[i])
        for here in range(leaves):
            if sources[j, here] == 0 or here == to:
                continue
            least = np.int64(-1)
            for s in range(np.uint32(spines)):
                a, b = up[here, s], down[s, to]
                cost = max(a, b) if larger else a + b
                if least < 0 or cost < least:
                    least, spine[here] = cost, s
            if leaf_by_leaf:
                up[here, spine[here]] += sources[j, here]
                down[spine[here], to] += sources[j, here]
        if not leaf_by_leaf:
            for here in range(leaves):
                if sources[j, here] != 0 and here != to:
                    up[here, spine[here]] += sources[j, here]
                    down[spine[here], to] += sources[j, here]
    return np.int64(max(up.max(), down.max()))
