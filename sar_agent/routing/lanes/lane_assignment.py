"""One attempt to assign the paths of tables to lanes; `assign_lanes.py` may make several.

Paths between hosts come first. Paths from and to switches and aggregation units come last and take
lanes that exist already: they carry hardly any traffic, and first they would cost lanes. One
attempt costs O(lanes · D · S) to follow the paths, and the search for cycles
(`routing/graph/two_way_search.py`) once for each dependency and lane.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, Bool
from sar_agent.routing.channel_dependencies import (
    collect_dependencies,
    empty_dependencies,
    offset_tables_of,
)
from sar_agent.routing.graph.csr import channel_graph_of
from sar_agent.routing.graph.topological_order import dependency_order
from sar_agent.routing.graph.two_way_search import LaneOrder, empty_lane, lane_of
from sar_agent.routing.lanes.place_paths import UNPLACED, new_walk, place_paths
from sar_agent.routing.lanes.search_order import adjacency_order, channel_order

MOST_LANES = 64
"""Lanes that an attempt may open; paths that need more need other routes."""
NEARLY_EMPTY = 1000
"""Where the last lane has less than a thousandth of the paths, it is worth trying to save it."""


class LaneProblem:
    """What all attempts on one fabric share: its channels and hosts."""

    def __init__(self, fabric: Fabric, offsets: int) -> None:
        self.fabric, self.offsets = fabric, offsets
        self.net = channel_graph_of(fabric)
        self.root: U32 = np.tile(fabric.destination_switch, offsets).astype(np.uint32)
        self.width = int(np.diff(fabric.channel_offset).max(initial=1))
        self.hosts: Bool = (fabric.terminals_at > 0) & fabric.switch_up
        units = np.zeros(fabric.switches, np.bool_)
        units[fabric.terminal_switch[fabric.terminal_up]] = True
        self.units: Bool = units & ~self.hosts & fabric.switch_up
        live = np.concatenate([fabric.terminal_up, fabric.switch_up])
        is_host = np.zeros(fabric.destinations, np.bool_)
        is_host[: fabric.terminals] = fabric.is_host_port
        self.is_host: Bool = is_host
        self.others: Bool = live & ~is_host

    @cached_property
    def place(self) -> I32:
        """int32[S]: place of each switch in the order in which paths are tried."""
        return adjacency_order(self.fabric)

    @cached_property
    def label_order(self) -> I32:
        """int32[C]: the order of channels with which an empty lane begins."""
        return channel_order(self.fabric, self.place)

    def rows(self, wanted: Bool) -> U32:
        """uint32[·]: rows of the destinations `wanted` bool[D], by the place of their switch."""
        d = np.flatnonzero(wanted)
        guid = self.fabric.nodes.destinations
        d = d[np.lexsort((guid[d], self.place[self.fabric.destination_switch[d]]))]
        step = np.arange(self.offsets)[:, None] * self.fabric.destinations
        return (step + d).ravel().astype(np.uint32)

    def sources(self, wanted: Bool) -> U32:
        """uint32[·]: the switches `wanted` bool[S], by place."""
        s = np.flatnonzero(wanted)
        return s[np.argsort(self.place[s])].astype(np.uint32)


@dataclass
class LaneAssignment:
    """Trees, and the lanes of their paths so far."""

    problem: LaneProblem
    trees: U8
    """uint8[R, S], R rows: D destinations for each LID offset."""
    level: U8 = field(init=False)
    """uint8[R, S]: lane of the path from each switch, `UNPLACED` where it has none yet."""
    lanes: list[LaneOrder] = field(default_factory=list)
    left: int = 0
    """Paths between hosts that fit none of `MOST_LANES` lanes."""
    last_nearly_empty: bool = False
    """Whether the last lane has hardly any paths."""

    def __post_init__(self) -> None:
        self.level = np.full_like(self.trees, UNPLACED)
        self.walk = new_walk(self.problem.fabric.switches)

    @property
    def complete(self) -> bool:
        """Whether every path between hosts is in a lane."""
        return self.left == 0

    def assign(self) -> None:
        """Assigns all paths: to one lane where that closes no cycle, else path by path."""
        problem = self.problem
        if lane := self.single_lane():
            self.level[np.ix_(np.tile(problem.is_host, problem.offsets), problem.hosts)] = 0
            self.lanes = [lane]
            return
        rows, sources = problem.rows(problem.is_host), problem.sources(problem.hosts)
        self.left, last = len(rows) * len(sources), 0
        while self.left and len(self.lanes) < MOST_LANES:
            last = self.left
            self.lanes.append(self.new_lane())
            self.left = self.fill(self.lanes[-1], rows, sources, len(self.lanes) - 1)
        self.last_nearly_empty = last * NEARLY_EMPTY < len(rows) * len(sources)

    def single_lane(self, level: U8 | None = None, lane: int = 0) -> LaneOrder | None:
        """A lane with all dependencies of paths between hosts, or, with `level` uint8[R, S], of
        those paths whose level is `lane`; None where these close a cycle."""
        problem, part = self.problem, self.problem.is_host
        depends = empty_dependencies(problem.fabric, 1 if level is None else lane + 1)
        for offset in range(problem.offsets):
            rows = slice(offset * len(part), (offset + 1) * len(part))
            levels = None if level is None else level[rows]
            tables = offset_tables_of(problem.fabric, self.trees[rows], levels, problem.hosts, part)
            collect_dependencies(tables, depends)
        order = dependency_order(problem.net, depends[lane])
        if len(order) < len(problem.net.target):
            return None
        return lane_of(problem.net, order, depends[lane])

    def reassign(self) -> None:
        """Assigns all paths again, those of the last lane first: these still fit one lane together,
        and the paths after them find other gaps. Never needs more lanes."""
        problem, count, before = self.problem, len(self.lanes), self.level.copy()
        if count == 1:
            return
        rows, sources = problem.rows(problem.is_host), problem.sources(problem.hosts)
        self.level[rows] = UNPLACED
        lanes: list[LaneOrder] = []
        left = 1
        while left and len(lanes) < count:
            lanes.append(self.new_lane())
            left = sum(
                self.fill(lanes[-1], rows, sources, len(lanes) - 1, before, wanted)
                for wanted in range(count - 1, -1, -1)
            )
        if left:
            self.level = before
        else:
            self.lanes = lanes

    def new_lane(self) -> LaneOrder:
        """A lane without paths."""
        return empty_lane(self.problem.net, self.problem.label_order, self.problem.width)

    def fill(
        self,
        lane: LaneOrder,
        rows: U32,
        sources: U32,
        number: int,
        before: U8 | None = None,
        wanted: int = UNPLACED,
    ) -> int:
        """Assigns the unplaced paths that fit to `lane`, whose number is `number`; returns how many
        do not fit."""
        return place_paths(
            self.problem.net, lane, self.walk, self.trees, self.problem.root,
            rows, sources, self.level if before is None else before, wanted, self.level, number,
        )  # fmt: skip
