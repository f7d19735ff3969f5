"""Grows many trees of light items in two halves, of which a second processor takes one.

The halves advance in batches. In a batch each places its trees among loads of its own, which
contain all that both placed in earlier batches; then each adds what the other has placed. So no
path depends on which half is quicker, and the tables are the same on one processor.

What the halves do not see of each other is small: light items, a batch at a time, and never on the
last hops, because all trees of a leaf switch belong to the same half. Channels that became too full
are relieved as always (`RouteBalance.improve`): on trees of 8,192 to 27,648 hosts the largest load
after that was the same within 0.3 % (mean of eight job mixes).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from sar_agent.fabric.model import U8, U32
from sar_agent.routing.balanced_trees import add_placed, place_trees
from sar_agent.routing.channel_loads import ChannelLoads
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, halves
from sar_agent.routing.pending_paths import PathScratch, other_scratch
from sar_agent.util.beside import second_processor

MANY = 1024
"""Fewer trees are grown one after the other."""
LIGHT = 2
"""The heaviest weight class: its items take at most a quarter of a link."""
BATCH = 64
"""Trees of a half in a batch."""


class Half(NamedTuple):
    """A half's trees, and what it needs to place them."""

    cache: DagCache
    loads: ChannelLoads
    scratch: PathScratch
    trees: U32

    def batch(self, number: int) -> U32:
        """The trees of a batch; none in the batch before the first."""
        return self.trees[max(0, number * BATCH) : max(0, (number + 1) * BATCH)]


def place_in_halves(
    graph: Graph,
    cache: DagCache,
    by_port: U32,
    work: DemandItems,
    loads: ChannelLoads,
    scratch: PathScratch,
    trees: U32,
    weight_class: int,
    egress: U8,
) -> None:
    """Does what `place_trees` does."""
    (cache, mine), (other_cache, others) = halves(cache, work.root[trees])
    copies = {name: getattr(loads, name).copy() for name in ("units", "counted", "price")}
    one = Half(cache, loads, scratch, trees[mine])
    two = Half(other_cache, loads._replace(**copies), other_scratch(scratch), trees[others])

    def add(half: Half, placed: U32) -> None:
        shared = graph, by_port, work
        add_placed(*shared, half.loads, half.scratch, placed, weight_class, egress)

    def place(half: Half, other: Half, number: int) -> None:
        add(half, other.batch(number - 1))
        parts = graph, half.cache, by_port, work, half.loads, half.scratch
        place_trees(*parts, half.batch(number), weight_class, egress)

    batches = -(-max(len(one.trees), len(two.trees)) // BATCH)
    with second_processor() as second:
        for number in range(batches):
            placed = second.start(partial(place, two, one, number))
            place(one, two, number)
            placed()
    add(one, two.batch(batches - 1))
