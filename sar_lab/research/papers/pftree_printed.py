"""pFTree, pFTree-Ext and pFTree-Wt as they are printed (pftree-2016, Algorithms 1 to 4), word by
word. pFTree has no policies and no weights.

For each host of each leaf switch, in the order of Algorithm 2, one way up is chosen
(Algorithm 3): among the least loaded ports up, by the routes that come down over them, the port to
the switch that is marked with the host's partition; of several marked switches the one that most
hosts of the partition came through, as the text says, or the first, as Algorithm 3 breaks its loop
(`-first`); if none is marked, the port of the highest GUID. From each switch of that way the rest
of the tree climbs to it (Algorithm 4). The mark is of the switch *above*, whose links to a leaf are
then used by partitions in turn: so two partitions separate as soon as both fill whole links.

pFTree-Ext (Section 6): if no switch above is marked with the host's own partition, a way up may not
lead to a switch that is marked with a stricter one (Algorithm 3, lines 13 to 20). That loop ends
only at such a way, and where every switch above is marked by a stricter partition it never does:
there the engine refuses. "The nodes with the highest partition priorities are routed first",
"upfront" (discussion i): on all leaf switches. Leaf by leaf the rows are the same.

pFTree-Wt (Section 7): a route adds its host's weight to a port's load instead of 1, and the hosts
of one partition under a leaf switch are taken by weight, heaviest first, at the places that
Algorithm 2 gives the partition.

Our engine `pftree` minimises the same rules over whole paths (`sar_agent/routing/pftree.py`). This
one exists to judge the paper's numbers by the paper's own words, and runs in plain Python.

`pftree-one-short` is a hypothesis about the program that was measured: Algorithm 2 with a stride
one less than the ways up, and the first marked switch. So the hosts of a partition drift over the
roots, and its links have hosts of both partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, Bool
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partitions, Policy
from sar_agent.routing.engine import Options, load_engine
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.pftree import order_terminals
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.updn import tree_order
from sar_lab.research.statistics import F64


class PFTreeAsPrinted:
    """Algorithms 1 to 4 on whole fat trees."""

    name = "pftree-printed"
    summary = "pFTree, literally (pftree-2016, Algorithms 1-4)"
    first_marked = False
    """Whether the first marked switch is taken, not that with most hosts of the partition."""
    one_short = False
    """Whether Algorithm 2 counts one way up less."""

    weighs = False
    """Whether weights count."""

    def read(self, partitions: Partitions) -> Partitions:
        """The partitions without policies."""
        parts = tuple(replace(part, policy=Policy.DEF) for part in partitions.parts)
        return replace(partitions, parts=parts)

    def order(self, fabric: Fabric, hosts: list[int], home: I32, weight: F64) -> Sequence[int]:
        """The hosts as they are routed, from the order of Algorithm 2."""
        return hosts

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no fat tree, lacks links, or has no partitions."""
        if options.partitions is None:
            raise Unserved(f"{self.name} needs partitions")
        higher = tree_order(fabric, graph_of(fabric)).higher
        partitions = self.read(options.partitions)
        home = partitions.of_terminal(fabric.terminals)
        weight = partitions.weights(fabric.terminals) if self.weighs else np.ones(fabric.terminals)
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        tables = _PrintedTables(fabric, egress, self.first_marked, partitions)
        counted = _one_less(fabric, higher) if self.one_short else higher
        equal = np.ones(fabric.terminals)
        order = order_terminals(fabric, partitions, home, counted, equal).tolist()
        for terminal in self.order(fabric, order, home, weight):
            if not tables.route(terminal, int(home[terminal]), float(weight[terminal])):
                raise Unserved(
                    f"{self.name}: Algorithm 3, lines 13 to 20, never ends for host "
                    f"{fabric.terminal_host[terminal]}: each way up leads to a switch of a "
                    "stricter partition"
                )
        # The print writes nothing into switches that no host climbs to: there, and to the switches'
        # own LIDs, as Up*/Down*.
        rest = load_engine("updn").route(fabric, JobMix(()), options).egress[0]
        egress[egress == NO_ROUTE] = rest[egress == NO_ROUTE]
        return Routes(self.name, fabric.digest, egress[None])


class PFTreeFirstMarked(PFTreeAsPrinted):
    """Of several marked switches the first, as printed."""

    name = "pftree-printed-first"
    first_marked = True


class PFTreeOneShort(PFTreeFirstMarked):
    """The hypothesis."""

    name = "pftree-one-short"
    one_short = True


class PFTreeExtAsPrinted(PFTreeAsPrinted):
    """With policies."""

    name = "pftree-ext-printed"

    def read(self, partitions: Partitions) -> Partitions:
        """As they are."""
        return partitions


class PFTreeWtAsPrinted(PFTreeAsPrinted):
    """With weights."""

    name = "pftree-wt-printed"
    weighs = True

    def order(self, fabric: Fabric, hosts: list[int], home: I32, weight: F64) -> Sequence[int]:
        """The places of a partition at a leaf, given to its hosts by weight."""
        places: dict[tuple[int, int], list[int]] = {}
        for host in hosts:
            places.setdefault((int(fabric.terminal_switch[host]), int(home[host])), []).append(host)
        by_weight = {
            of: iter(sorted(some, key=lambda t: -weight[t])) for of, some in places.items()
        }
        return [next(by_weight[int(fabric.terminal_switch[t]), int(home[t])]) for t in hosts]


def _one_less(fabric: Fabric, higher: Bool) -> Bool:
    """`higher` without one way up of each switch, so that whoever counts them has one less."""
    ups = np.flatnonzero(higher)
    last = len(ups) - 1 - np.unique(fabric.channel_source[ups][::-1], return_index=True)[1]
    fewer = higher.copy()
    fewer[ups[last]] = False
    return fewer


class _PrintedTables:
    """The tables as they grow, with the loads and marks that the algorithms read."""

    def __init__(
        self, fabric: Fabric, egress: np.ndarray, first_marked: bool, partitions: Partitions
    ) -> None:
        level = tree_levels(fabric)
        live = np.flatnonzero(fabric.channel_up)
        up = live[level[fabric.channel_target[live]] > level[fabric.channel_source[live]]]
        guid = fabric.switch_guid
        # The highest GUID first, as Algorithms 3 and 4 sort.
        by_guid = sorted(up.tolist(), key=lambda c: -int(guid[fabric.channel_target[c]]))
        self.ups: list[list[int]] = [[] for _ in range(fabric.switches)]
        for channel in by_guid:
            self.ups[fabric.channel_source[channel]].append(channel)
        self.downs: list[dict[int, list[int]]] = [{} for _ in range(fabric.switches)]
        for channel in up.tolist():
            below = self.downs[fabric.channel_target[channel]]
            below.setdefault(int(fabric.channel_source[channel]), []).append(channel)
        self.fabric, self.egress, self.first_marked = fabric, egress, first_marked
        self.policy = [*(int(part.policy) for part in partitions.parts), int(Policy.DEF)]
        self.down_load = [0.0] * fabric.channels
        """By the channel *up* of a port: the weight of the hosts that are reached down through
        this port."""
        self.up_load = [0] * fabric.channels
        self.marks: list[dict[int, int]] = [{} for _ in range(fabric.switches)]

    def route(self, terminal: int, partition: int, weight: float) -> bool:
        """Algorithm 1, lines 5 to 10, with the recursion of Algorithm 3 as a loop; False where its
        own loop never ends."""
        fabric, table = self.fabric, self.egress[terminal]
        switch = int(fabric.terminal_switch[terminal])
        table[switch] = fabric.terminal_switch_port[terminal]
        self._climb(switch, table)
        while self.ups[switch]:
            least = min(self.down_load[c] for c in self.ups[switch])
            ports = [c for c in self.ups[switch] if self.down_load[c] == least]
            # `max` takes the first of equals: the highest GUID.
            port = max(ports, key=lambda c: self._marked(c, partition))
            if not self._marked(port, partition):
                # Lines 12 to 21; sorting is stable, so the highest GUID stays first.
                ways = sorted(self.ups[switch], key=lambda c: self.down_load[c])
                free = [c for c in ways if not self._stricter(c, partition)]
                if not free:
                    return False
                port = free[0]
            self.down_load[port] += weight
            switch = int(fabric.channel_target[port])
            table[switch] = fabric.channel_port[fabric.channel_reverse[port]]
            self.marks[switch][partition] = self.marks[switch].get(partition, 0) + 1
            self._climb(switch, table)
        return True

    def _stricter(self, channel: int, partition: int) -> bool:
        marks = self.marks[int(self.fabric.channel_target[channel])]
        return any(self.policy[other] < self.policy[partition] for other in marks)

    def _marked(self, channel: int, partition: int) -> int:
        switch = int(self.fabric.channel_target[channel])
        count = self.marks[switch].get(partition, 0)
        return min(count, 1) if self.first_marked else count

    def _climb(self, top: int, table: np.ndarray) -> None:
        """Algorithm 4: whatever is below `top` and has no route climbs to it, over the least loaded
        of parallel links; lower switches first get theirs from the switch next above."""
        waiting = [top]
        while waiting:
            switch = waiting.pop()
            for below, links in self.downs[switch].items():
                if table[below] != NO_ROUTE:
                    continue
                link = min(links, key=lambda c: self.up_load[c])
                self.up_load[link] += 1
                table[below] = self.fabric.channel_port[link]
                waiting.append(below)
