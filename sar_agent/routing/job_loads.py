"""What jobs load channels with, on tables that change.

Loads are integers, so removing a tree restores exactly the loads from before it was added.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.components import components_below
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import F64, I64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.demand_items import FULL_LOAD, DemandItems, Objective, demand_items_of
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache
from sar_agent.util.kernels import kernel, kernel_part

ADD, KEEP, REMOVE = np.int64(1), np.int64(0), np.int64(-1)
"""Signs of `carry_tree`. For plain numbers, numba would compile it three times."""


SUBTREE_TERMINALS = 16384
"""Terminals of jobs above which the bound knows subtrees, too. Where these are thin, no routes come
near the bound of the leaves, and the search for them takes minutes (1 to 13 s with 1,728 to 5,832
hosts, for 1 to 3 % of throughput).

**Weak spot:** the rehearsal has no mix of that size, so `_leaving` is compiled when the first such
mix comes, which takes a fraction of a second, once."""


class Paths(NamedTuple):
    """The paths that routes may take, and what they carry."""

    graph: Graph
    cache: DagCache
    by_port: U32
    """uint32[S, P]: the channel that leaves a switch by a port; C or more where there is none."""
    share: F64
    """float64[C]: one unit as a share of the channel's capacity."""
    width: F64
    """float64[C]: messages at full speed that the channel carries at once."""
    units: I64
    """int64[C]: what the jobs send over each channel, …"""
    load: F64
    """float64[C]: … and as a share of its capacity."""


class JobLoads:
    """The loads of a mix of jobs on tables uint8[T + S, S]: none until they are carried."""

    def __init__(
        self, fabric: Fabric, graph: Graph, cache: DagCache, mix: JobMix, objective: Objective
    ) -> None:
        self.fabric = fabric
        self.objective = objective
        width = fabric.channel_rate.astype(np.float64) / float(fabric.terminal_rate.max())
        share = 1 / (width * FULL_LOAD)
        if objective == "routes":
            share, width = np.ones_like(share), np.ones_like(width)
        self.paths = Paths(
            graph,
            cache,
            fabric.channel_by_port.astype(np.uint32),
            share,
            width,
            np.zeros(fabric.channels, np.int64),
            np.zeros(fabric.channels, np.float64),
        )
        self.use(mix)

    def use(self, mix: JobMix) -> None:
        """Takes another mix; loads stay as they are."""
        self.mix, self.work = mix, demand_items_of(self.fabric, mix, self.objective)
        self._least: F64 | None = None
        terminals = np.unique(mix.terminal)
        by_guid = np.argsort(self.fabric.terminal_guid[terminals])
        self.terminals = terminals[by_guid].astype(np.uint32)
        """uint32[·]: the destinations of jobs, by GUID."""

    def carry(self, egress: U8, terminals: U32, sign: int = 1) -> None:
        """Adds (`sign` 1) or removes (-1) what jobs send to these terminals."""
        carry_trees(self.paths, self.work, terminals, egress, sign)

    def peak(self) -> float:
        """The largest load (routes with objective `routes`)."""
        return float(self.paths.load.max(initial=0.0))

    def peaks(self, egress: U8) -> F64:
        """float64[J]: how much longer jobs take while all of them do all-to-all at once: the load
        of the fullest channel of each, at least 1."""
        return _job_peaks(self.paths, self.work, egress)

    def least_loads(self) -> F64:
        """float64[S]: a lower bound of the largest load at each switch. All traffic between a
        leaf's terminals and other leaves must cross the leaf's own channels, and traffic to one
        terminal crosses only one of them, as at other switches. Above `SUBTREE_TERMINALS`, what
        leaves a subtree crosses the channels that leave it."""
        if self._least is None:
            self._least = self._switch_loads()
            if len(self.mix.terminal) > SUBTREE_TERMINALS:
                self._least = np.maximum(self._least, self.subtree_loads())
        return self._least

    def _switch_loads(self) -> F64:
        work, fabric = self.work, self.fabric
        leaving = np.bincount(work.leaf, work.item * work.elsewhere, fabric.switches)
        live = fabric.channel_up
        share = self.paths.share[live]
        capacity = np.bincount(fabric.channel_source[live], 1.0 / share, fabric.switches)
        loads = np.divide(leaving, capacity, out=np.zeros(fabric.switches), where=capacity > 0)
        item = float(work.item[work.elsewhere > 0].max(initial=0)) * float(share.min(initial=1))
        least: F64 = np.maximum(loads, item)
        return least

    def subtree_loads(self) -> F64:
        """float64[S]: such a bound at the switches with channels that leave a thin subtree, and 0
        at others."""
        source, target = self.fabric.channel_source, self.fabric.channel_target
        least = np.zeros(self.fabric.switches)
        for group in thin_subtrees(self.fabric):
            cut = self.fabric.channel_up & (group[source] != group[target])
            capacity = np.bincount(group[source[cut]], 1.0 / self.paths.share[cut], len(group))
            leaving = _leaving(self.work, group)
            load = np.divide(leaving, capacity, out=np.zeros_like(least), where=capacity > 0)
            at = np.unique(source[cut])
            least[at] = np.maximum(least[at], load[group[at]])
        return least


@lru_cache(maxsize=2)
def thin_subtrees(fabric: Fabric) -> tuple[I64, ...]:
    """int64[S] for each level of which a subtree has less capacity than its leaf switches: the
    first switch of each one's subtree. Elsewhere no bound is above the largest of the leaves."""
    level, rate = levels_of(fabric), fabric.channel_rate
    source, target = fabric.channel_source, fabric.channel_target
    up, found = fabric.channel_up & (level[source] == 0), []
    for highest in range(1, int(level.max(initial=0))):
        group = components_below(fabric, level, highest)
        cut = fabric.channel_up & (group[source] != group[target])
        out = np.bincount(group[source[cut]], rate[cut], fabric.switches)
        if (out < np.bincount(group[source[up]], rate[up], fabric.switches)).any():
            found.append(group)
    return tuple(found)


@kernel
def _leaving(work: DemandItems, group: I64) -> F64:  # pragma: no cover
    """float64[S]: the units of jobs that leave each group of switches, int64[S]."""
    leaving = np.zeros(len(group), np.float64)
    for m in range(len(work.terminal)):
        home = group[work.root[work.terminal[m]]]
        for i in range(work.first[m], work.past[m]):
            at = group[work.leaf[i]]
            if at != home:
                leaving[at] += work.item[i]
    return leaving


@kernel_part
def carry_tree(
    paths: Paths,
    work: DemandItems,
    d: int | np.integer,
    tree: U8,
    sign: int | np.integer,
) -> float:  # pragma: no cover
    """Adds (`sign` 1) or removes (-1) what jobs send to terminal `d`; returns the largest load on
    their paths then."""
    target, by_port, leaf = paths.graph.target, paths.by_port, work.leaf
    units, load, share = paths.units, paths.load, paths.share
    root, most = work.root[d], 0.0
    for k in range(work.on_offset[d], work.on_offset[d + 1]):
        x = work.on_member[k]
        for i in range(work.first[x], work.past[x]):
            v = leaf[i]
            while v != root:
                c = by_port[v, tree[v]]
                if c >= len(target):
                    break  # a leaf that is cut off
                units[c] += sign * work.item[i]
                load[c] = units[c] * share[c]
                most = max(most, load[c])
                v = target[c]
    return most


@kernel
def carry_trees(
    paths: Paths, work: DemandItems, terminals: U32, egress: U8, sign: int
) -> None:  # pragma: no cover
    """Adds or removes what jobs send to these terminals."""
    for d in terminals:
        carry_tree(paths, work, d, egress[d], sign)


@kernel
def _job_peaks(paths: Paths, work: DemandItems, egress: U8) -> F64:  # pragma: no cover
    """float64[J]: the load of the fullest channel that each job uses, at least 1."""
    target, by_port, leaf, load = paths.graph.target, paths.by_port, work.leaf, paths.load
    peaks = np.ones(len(work.unit), np.float64)
    for j in range(len(peaks)):
        for x in range(work.member[j], work.member[j + 1]):
            d = work.terminal[x]
            root, tree = work.root[d], egress[d]
            for i in range(work.first[x], work.past[x]):
                v = leaf[i]
                while v != root:
                    c = by_port[v, tree[v]]
                    if c >= len(target):
                        break  # a leaf that is cut off
                    peaks[j] = max(peaks[j], load[c])
                    v = target[c]
    return peaks
