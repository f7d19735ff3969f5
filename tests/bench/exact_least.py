"""The least possible largest load of small cases, by HiGHS: is a gap the bound's or the routes'?

A binary for each channel that an entry may choose, and the traffic to each destination on each
channel. A solution is tables of shortest paths, as the engines make them.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.demand_items import FULL_LOAD, demand_items_of
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.hop_counts import all_hops


class _Rows:
    """Linear constraints, row by row."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.column: list[int] = []
        self.value: list[float] = []
        self.least: list[float] = []
        self.most: list[float] = []

    def add(self, terms: dict[int, float], least: float, most: float) -> None:
        """`least` ≤ the sum of value · variable ≤ `most`."""
        self.row += [len(self.least)] * len(terms)
        self.column += terms
        self.value += terms.values()
        self.least.append(least)
        self.most.append(most)

    def constraint(self, variables: int) -> LinearConstraint:
        """All rows, for that many variables."""
        shape = len(self.least), variables
        matrix = coo_array((self.value, (self.row, self.column)), shape=shape)
        return LinearConstraint(matrix.tocsr(), self.least, self.most)


def least_load(fabric: Fabric, mix: JobMix, seconds: float) -> float:
    """A lower bound of the largest load of shortest paths: the least one itself where HiGHS proves
    it in `seconds`."""
    hops = all_hops(graph_of(fabric)).astype(np.int64)
    source, target = fabric.channel_source.tolist(), fabric.channel_target.tolist()
    out = defaultdict(list)
    for channel in np.flatnonzero(fabric.channel_up).tolist():
        out[source[channel]].append(channel)
    capacity = fabric.channel_rate / float(fabric.terminal_rate.max())
    rows, binary = _Rows(), list[int]()
    on_channel: dict[int, dict[int, float]] = defaultdict(dict)
    variables = 1  # the first is the largest load
    for d, sent in _demand(fabric, mix).items():
        root, into = int(fabric.terminal_switch[d]), defaultdict(dict)
        for v in np.argsort(-hops[root], kind="stable").tolist():
            if v == root or not (sent[v] or into[v]):
                continue
            ways = [c for c in out[v] if hops[root, target[c]] + 1 == hops[root, v]]
            chosen = range(variables, variables + len(ways))
            flows = range(chosen.stop, chosen.stop + len(ways))
            variables = flows.stop
            binary += chosen
            rows.add(dict.fromkeys(chosen, 1.0), 1, 1)
            rows.add(dict.fromkeys(flows, 1.0) | into[v], sent[v], sent[v])
            for c, choice, flow in zip(ways, chosen, flows, strict=True):
                rows.add({flow: 1.0, choice: -float(sent.sum())}, -np.inf, 0)
                into[target[c]][flow] = -1.0
                on_channel[c][flow] = 1.0
    for channel, flows_on in on_channel.items():
        rows.add({**flows_on, 0: -float(capacity[channel])}, -np.inf, 0)
    whole = np.zeros(variables)
    whole[binary] = 1
    found = milp(
        np.eye(1, variables)[0],
        constraints=rows.constraint(variables),
        integrality=whole,
        bounds=Bounds(0, np.where(whole > 0, 1, np.inf)),
        options={"time_limit": seconds},
    )
    return float(found.mip_dual_bound or 0.0)


def _demand(fabric: Fabric, mix: JobMix) -> dict[int, np.ndarray]:
    """Destination → float64[S], what each switch sends to it, as a share of full speed."""
    work = demand_items_of(fabric, mix, "load")
    demand = {}
    for d in np.unique(mix.terminal).tolist():
        sent = np.zeros(fabric.switches)
        for m in work.on_member[work.on_offset[d] : work.on_offset[d + 1]]:
            items = slice(work.first[m], work.past[m])
            np.add.at(sent, work.leaf[items], work.item[items] / FULL_LOAD)
        sent[fabric.terminal_switch[d]] = 0
        if sent.any():
            demand[d] = sent
    return demand
