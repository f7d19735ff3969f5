"""The shortest paths of one fabric: what the steps of an engine compute once and share."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import U8, U32
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.hop_counts import all_hops
from sar_agent.routing.repair import neighbours_of, same_indices
from sar_agent.routing.updown_property import all_up_then_down


class ShortestPaths:
    """The fabric as a graph, and the distances between its switches.

    `before` are the shortest paths of the same fabric before a change. Where it only lost cables or
    switches, `rise_then_fall` may follow from them without a search.
    """

    def __init__(self, fabric: Fabric, before: ShortestPaths | None = None) -> None:
        self.fabric = fabric
        self.graph: Graph = graph_of(fabric)
        self.hops: U8 = all_hops(self.graph)
        """uint8[S, S]: hops between switches."""
        self._rise_then_fall_as_before = (
            before is not None and before.rise_then_fall and self._only_lost(before)
        )

    @cached_property
    def rise_then_fall(self) -> bool:
        """Whether all shortest paths between hosts go up, then down: then none of them can close a
        credit loop."""
        return self._rise_then_fall_as_before or self._rise_then_fall(between_hosts=True)

    @cached_property
    def all_rise_then_fall(self) -> bool:
        """The same of all shortest paths from hosts, also to switches that have none."""
        return self._rise_then_fall(between_hosts=False)

    @cached_property
    def neighbours(self) -> U32:
        """uint32[S, ports]: the switch at the other end of each live cable; else the switch."""
        return neighbours_of(self.fabric)

    def _only_lost(self, before: ShortestPaths) -> bool:
        """Whether all shortest paths between hosts were shortest paths between hosts before: cables
        and switches are only lost, and no distance between hosts grew."""
        now, then = self.neighbours, before.neighbours
        if not same_indices(before.fabric, self.fabric) or now.shape != then.shape:
            return False
        switch = np.arange(len(now), dtype=np.uint32)[:, None]
        hosts = self.fabric.terminals_at > 0
        hosts_came = hosts & (before.fabric.terminals_at == 0)
        if hosts_came.any() or ((now != then) & (now != switch)).any():
            return False
        return not ((self.hops != before.hops)[hosts] & hosts).any()

    def _rise_then_fall(self, *, between_hosts: bool) -> bool:
        level = levels_of(self.fabric)
        by_level = np.argsort(level, kind="stable").astype(np.uint32)
        hosts = self.fabric.terminals_at > 0
        # Contiguous rows, in either case: one compiled function serves both.
        to_roots = np.ascontiguousarray(self.hops[:, hosts]) if between_hosts else self.hops
        return bool(all_up_then_down(self.graph, to_roots, level, by_level, hosts))
