"""Tables and how their paths are laid into lanes: one attempt of several that may be made.

Host-to-host paths come first, part by part: destinations whose paths may share lanes (all of them,
unless groups are to be kept apart). Paths from and to what is no host are placed last, into lanes
that are there: they are next to nothing, and placed first they would cost lanes.
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
from sar_agent.routing.graph.two_way_search import LaneOrder, empty_lane, lane_of, new_order_search
from sar_agent.routing.lanes.place_paths import UNPLACED, new_walk, place
from sar_agent.routing.lanes.search_order import adjacency_order, channel_order

MOST_LANES = 64
"""Lanes in which paths are tried; who needs more needs other routes."""
HARDLY = 1000
"""A lane of less than a thousandth of the paths is worth trying to do without."""


class LaneProblem:
    """What all attempts on one fabric share."""

    def __init__(self, fabric: Fabric, groups: I32 | None, offsets: int) -> None:
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
        group = np.zeros(fabric.destinations, np.int64)
        if groups is not None:
            group[: fabric.terminals] = groups
        self.parts: list[Bool] = [is_host & (group == one) for one in np.unique(group[is_host])]
        """bool[D] each: hosts' destinations whose paths may share lanes."""

    @cached_property
    def place(self) -> I32:
        """int32[S]: place of each switch in the order of trying."""
        return adjacency_order(self.fabric)

    @cached_property
    def label_order(self) -> I32:
        """int32[C]: what labels begin with."""
        return channel_order(self.fabric, self.place)

    def rows(self, wanted: Bool) -> U32:
        """uint32[·]: rows of these destinations (bool[D]), by place of their switch."""
        d = np.flatnonzero(wanted)
        guid = np.concatenate([self.fabric.terminal_guid, self.fabric.switch_guid])
        d = d[np.lexsort((guid[d], self.place[self.fabric.destination_switch[d]]))]
        step = np.arange(self.offsets)[:, None] * self.fabric.destinations
        return (step + d).ravel().astype(np.uint32)

    def sources(self, wanted: Bool) -> U32:
        """uint32[·]: these switches (bool[S]), by place."""
        s = np.flatnonzero(wanted)
        return s[np.argsort(self.place[s])].astype(np.uint32)


@dataclass
class LaneAssignment:
    """Trees, and levels given so far; of each part they count from 0."""

    ground: LaneProblem
    trees: U8
    """uint8[R, S], R rows: D destinations for each LID offset."""
    how: str = ""
    """What the tables are, where they are not the engine's."""
    level: U8 = field(init=False)
    """uint8[R, S], `UNPLACED` where there is none."""
    lanes: list[list[LaneOrder]] = field(default_factory=list)
    """For each part."""
    left: int = 0
    """Paths between hosts that are in none, of `MOST_LANES`."""
    hardly: bool = False
    """Whether next to nothing is in the last lane of some part."""

    def __post_init__(self) -> None:
        self.level = np.full_like(self.trees, UNPLACED)
        self.search = new_order_search(self.ground.net)
        self.walk = new_walk(self.ground.fabric.switches)

    @property
    def needed(self) -> int:
        """Lanes of all parts together."""
        return sum(map(len, self.lanes))

    @property
    def complete(self) -> bool:
        """Whether every path between hosts is in a lane."""
        return self.left == 0

    def lay(self) -> None:
        """Every part: in one lane where it closes no cycle, else path by path."""
        for part in self.ground.parts:
            lane = self.whole(part, self.ground.hosts)
            if lane is not None:
                self.level[np.ix_(np.tile(part, self.ground.offsets), self.ground.hosts)] = 0
                self.lanes.append([lane])
            else:
                self.lanes.append(self._layers(part))

    def one_lane(self) -> bool:
        """Whether all paths between hosts together close no cycle."""
        return all(self.whole(part, self.ground.hosts) for part in self.ground.parts)

    def whole(
        self, part: Bool, sends: Bool, level: U8 | None = None, lane: int = 0
    ) -> LaneOrder | None:
        """A lane with all dependencies of a part's paths (of those of `level` uint8[R, S] `lane`,
        where given); None where these close a cycle."""
        ground = self.ground
        depends = empty_dependencies(ground.fabric, 1 if level is None else lane + 1)
        for offset in range(ground.offsets):
            rows = slice(offset * len(part), (offset + 1) * len(part))
            levels = None if level is None else level[rows]
            tables = offset_tables_of(ground.fabric, self.trees[rows], levels, sends, part)
            collect_dependencies(tables, depends)
        order = dependency_order(ground.net, depends[lane])
        if len(order) < len(ground.net.target):
            return None
        return lane_of(ground.net, order, depends[lane])

    def _layers(self, part: Bool) -> list[LaneOrder]:
        rows, sources = self.ground.rows(part), self.ground.sources(self.ground.hosts)
        lanes: list[LaneOrder] = []
        left, last = len(rows) * len(sources), 0
        while left and len(lanes) < MOST_LANES:
            last = left
            lanes.append(self.new_lane())
            left = self.put(lanes[-1], rows, sources, len(lanes) - 1)
        self.hardly |= last * HARDLY < len(rows) * len(sources)
        self.left += left
        return lanes

    def again(self) -> None:
        """Lays what took more than one lane once more, the paths of the last lane first: these
        still fit one lane together, and what comes after finds other gaps. Never needs more."""
        sources = self.ground.sources(self.ground.hosts)
        for index, part in enumerate(self.ground.parts):
            count = len(self.lanes[index])
            if count == 1:
                continue
            rows, before = self.ground.rows(part), self.level.copy()
            self.level[rows] = UNPLACED
            lanes: list[LaneOrder] = []
            left = 1
            while left and len(lanes) < count:
                lanes.append(self.new_lane())
                left = sum(
                    self.put(lanes[-1], rows, sources, len(lanes) - 1, before, wanted)
                    for wanted in range(count - 1, -1, -1)
                )
            if left:
                self.level = before
            else:
                self.lanes[index] = lanes

    def new_lane(self) -> LaneOrder:
        """An empty one."""
        return empty_lane(self.ground.net, self.ground.label_order, self.ground.width)

    def put(
        self,
        lane: LaneOrder,
        rows: U32,
        sources: U32,
        number: int,
        before: U8 | None = None,
        wanted: int = UNPLACED,
    ) -> int:
        """Gives `number` to the unplaced paths that fit the lane; how many do not."""
        return place(
            self.ground.net, lane, self.search, self.walk, self.trees, self.ground.root,
            rows, sources, self.level if before is None else before, wanted, self.level, number,
        )  # fmt: skip
