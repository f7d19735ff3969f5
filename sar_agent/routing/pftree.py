"""Partition-aware fat-tree routing: pFTree and its extensions (pftree-2016).

The paper chooses ports switch by switch: the least loaded first, then ports towards a switch that
is marked with the partition, and never a port that a stricter partition holds. Here the same rules
are the digits of one price, the most important first, and a destination's tree takes the cheapest
of all Up*/Down* shortest paths from the leaves where its partition's members are:

    held by, or used beside, a partition it must not meet  >  load  >  another partition's link
    >  a switch that fewer routes of its own partition pass

Loads count only the traffic of members, so unused routes add nothing (Section 4). Partitions with
the strictest policies come first, and the hosts of a leaf in the order of the paper's Algorithm 2.
A `phy` partition may take links in proportion to its members at a switch, so that others keep some.

    pftree            no policies: balance, then separation; lanes where links are shared
    pftree-ext        policies phy, vlane, def; strict or best-effort (Section 6)
    pftree-wt         loads are the destinations' weights (Section 7); all traffic comes down to a
                      host over the same links, so that heavy hosts have links of their own
    pftree-combined   A times the price of -ext plus (1 - A) times that of -wt (Equation 2)
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32, I64, U32, Bool
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partition, Partitions, Policy
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.pftree_grow import ChannelOwners, PartitionSenders, grow_partition_trees
from sar_agent.routing.pftree_lanes import partition_lanes
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.updn import tree_order
from sar_agent.routing.updown_paths import new_row

log = logging.getLogger(__name__)


class PFTree:
    """Balances first, then separates partitions (Section 5)."""

    name = "pftree"
    summary = "fat trees: keeps partitions apart where that costs no balance (pftree-2016, 5)"
    knows_jobs = True

    applies_policies = False

    def share(self, options: Options) -> float:
        """A of Equation 2: 1 counts routes, 0 weights."""
        return 1.0

    def partitions(self, given: Partitions) -> Partitions:
        """The partitions with the policies that this engine applies: here each one gets `vlane`."""
        parts = tuple(replace(part, policy=Policy.VLANE) for part in given.parts)
        return replace(given, parts=parts, strict=False)

    def quotas(self, fabric: Fabric, partitions: Partitions, higher: Bool) -> I32:
        """int32[P + 1, S]: how many channels up from a switch, and as many down to it, each `phy`
        isolation group may take."""
        return _quotas(fabric, partitions, higher)

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no fat tree, `InputError` without partitions, and
        `CheckFailed` where a strict policy cannot be met."""
        if options.partitions is None:
            raise InputError(f"{self.name} needs partitions", remedy="name them: --partitions FILE")
        partitions = self.partitions(options.partitions)
        graph = graph_of(fabric)
        legal = tree_order(fabric, graph)
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        isolation = np.append(partitions.isolation, np.int32(-1))
        home = partitions.of_terminal(fabric.terminals)
        policy = np.array([*(p.policy for p in partitions.parts), Policy.DEF], np.uint8)
        owners = ChannelOwners(
            np.full(max(1, fabric.channels), -1, np.int32),
            np.zeros(max(1, fabric.channels), np.bool_),
        )
        senders = senders_of(fabric, mix, partitions)
        weight, share = partitions.weights(fabric.terminals), self.share(options)
        # As in the paper, all sources come down to a host over the same links. With routes alone
        # that would harm separation; with weights, heavy hosts benefit.
        one_way = share < 1.0
        counted = weight if one_way else np.ones(fabric.terminals)
        broken = grow_partition_trees(
            graph,
            legal,
            new_row(fabric),
            senders,
            fabric.terminal_switch.astype(np.uint32),
            fabric.terminal_switch_port.astype(np.uint8),
            order_terminals(fabric, partitions, home, legal.higher, counted),
            isolation[home],
            policy[home],
            weight,
            self.quotas(fabric, partitions, legal.higher),
            share,
            one_way,
            owners,
            egress,
        )
        warnings = _broken(fabric, partitions, home, broken)
        fill_loop_free(fabric, graph, egress)
        routes = Routes(self.name, fabric.digest, egress[None], jobs_digest=mix.digest(fabric))
        routes, lane_warnings = partition_lanes(fabric, routes, partitions, options)
        for warning in (*warnings, *lane_warnings) if self.applies_policies else ():
            log.warning("%s", warning)
        return routes


class PFTreeExt(PFTree):
    """Applies the policies of partitions (Section 6)."""

    name = "pftree-ext"
    summary = "pftree with policies phy, vlane, def per partition (pftree-2016, 6)"

    applies_policies = True

    def partitions(self, given: Partitions) -> Partitions:
        return given


class PFTreeWt(PFTree):
    """Balances the weights of nodes (Section 7)."""

    name = "pftree-wt"
    summary = "pftree that balances the weights of nodes (pftree-2016, 7)"

    def share(self, options: Options) -> float:
        return 0.0


class PFTreeCombined(PFTreeExt):
    """Applies policies and balances weights (Section 8)."""

    name = "pftree-combined"
    summary = "pftree-ext and pftree-wt in one price, --combine A (pftree-2016, Eq. 2)"

    def share(self, options: Options) -> float:
        return options.combine


def senders_of(fabric: Fabric, mix: JobMix, partitions: Partitions) -> PartitionSenders:
    """The leaf switches from which members of each partition, or of each job, send; terminals in no
    partition receive from everywhere."""
    leaf = fabric.terminal_switch
    rows: list[tuple[I32, I64]] = []
    for part in partitions.parts:
        live = part.terminals[fabric.is_host_port[part.terminals]]
        at, count = np.unique(leaf[live], return_counts=True)
        rows.append((at.astype(np.int32), count))
    rows.append((fabric.leaves, fabric.terminals_at[fabric.leaves].astype(np.int64)))
    home = partitions.of_terminal(fabric.terminals)
    of_terminal = np.where(home < 0, len(partitions.parts), home)
    if partitions.balance_jobs:
        job_of, on_job = mix.by_terminal(fabric.terminals)
        offset, leaves, counts = mix.by_leaf(fabric)
        first = len(rows)
        for j in range(len(mix.jobs)):
            at_leaves = slice(offset[j], offset[j + 1])
            rows.append((leaves[at_leaves], counts[at_leaves].astype(np.int64)))
        busy = np.flatnonzero(np.diff(job_of))
        inside = busy[home[busy] < 0]  # only a partition's own members may send to it
        of_terminal[inside] = first + on_job[job_of[inside]]
    return PartitionSenders(
        np.cumsum([0, *(len(at) for at, _ in rows)]).astype(np.uint32),
        np.concatenate([at for at, _ in rows]).astype(np.uint32),
        of_terminal.astype(np.uint32),
    )


def order_terminals(
    fabric: Fabric, partitions: Partitions, home: I32, higher: Bool, weight: F64
) -> U32:
    """uint32[·]: live host ports; the strictest policy first, then leaf by leaf; inside a leaf in
    the order of Algorithm 2: members of one partition at indices that differ by the number of ways
    up, then the heaviest first (Section 7). `weight` float64[T] is constant where weights do not
    count."""
    ups = np.bincount(fabric.channel_source[higher], minlength=fabric.switches)
    policy = np.array([*(p.policy for p in partitions.parts), Policy.DEF], np.int64)
    by_policy: list[list[int]] = [[], [], []]
    guid = fabric.switch_guid[fabric.terminal_switch]
    ports = np.lexsort((fabric.terminal_switch_port, guid))
    ports = ports[fabric.is_host_port[ports]]
    cuts = np.flatnonzero(np.diff(fabric.terminal_switch[ports])) + 1
    for at_leaf in np.split(ports, cuts):
        if not len(at_leaf):
            continue
        at_leaf = at_leaf[np.argsort(policy[home[at_leaf]], kind="stable")]
        width = int(ups[fabric.terminal_switch[at_leaf[0]]])
        for t in sorted(_algorithm_2(at_leaf.tolist(), home, width), key=lambda t: -weight[t]):
            by_policy[int(policy[home[t]])].append(t)
    return np.array(by_policy[0] + by_policy[1] + by_policy[2], np.uint32)


def _algorithm_2(terminals: list[int], home: I32, ups: int) -> list[int]:
    """OrderComputeNodes (Algorithm 2) for the hosts of one leaf, sorted by policy."""
    if len(terminals) <= ups:
        return terminals
    place: list[int | None] = [None] * len(terminals)
    last: dict[int, int] = {}
    for t in terminals:
        part = int(home[t])
        wanted = last[part] + ups if part in last else len(last)
        if wanted >= len(place) or place[wanted] is not None:
            wanted = place.index(None)
        place[wanted] = t
        last[part] = wanted
    return [t for t in place if t is not None]


def _quotas(fabric: Fabric, partitions: Partitions, higher: Bool) -> I32:
    """int32[P + 1, S]: how many channels up from a switch, and as many down to it, each `phy`
    isolation group may take: in proportion to its share of the hosts below, at least one, and never
    the last one while others are below."""
    ups = np.bincount(fabric.channel_source[higher], minlength=fabric.switches)
    isolation = partitions.isolation
    quota = np.zeros((int(isolation.max(initial=-1)) + 2, fabric.switches), np.int32)
    below = _hosts_below(fabric, np.flatnonzero(fabric.is_host_port))
    for number in np.unique(isolation):
        members = [p.terminals for p, i in zip(partitions.parts, isolation, strict=True)
                   if i == number and p.policy is Policy.PHY]  # fmt: skip
        if not members:
            continue
        of_group = np.unique(np.concatenate(members))
        group_below = _hosts_below(fabric, of_group[fabric.is_host_port[of_group]])
        share = np.divide(group_below, below, out=np.zeros(len(below)), where=below > 0)
        most = np.minimum(
            np.floor(partitions.phy_links_most * ups), np.where(group_below < below, ups - 1, ups)
        )
        quota[number] = np.maximum(1, np.minimum(np.round(share * ups), most))
    return quota


def _hosts_below(fabric: Fabric, terminals: NDArray[np.integer]) -> F64:
    """float64[S]: how many of these host ports are below each switch; above the leaves each switch
    passes its number on to all its parents."""
    level = tree_levels(fabric)
    hosts = np.bincount(fabric.terminal_switch[terminals], minlength=fabric.switches).astype(float)
    live = fabric.channel_up
    for height in range(1, int(level.max(initial=0)) + 1):
        step = live & (level[fabric.channel_target] == height)
        step &= level[fabric.channel_source] == height - 1
        np.add.at(hosts, fabric.channel_target[step], hosts[fabric.channel_source[step]])
    return hosts


def _broken(fabric: Fabric, partitions: Partitions, home: I32, broken: I32) -> list[str]:
    """A sentence for each partition whose `phy` policy was not met. Raises `CheckFailed` with the
    first one where policies are strict."""
    sentences = []
    seen = set()
    for destination, channel in broken.tolist():
        part: Partition | None = (
            partitions.parts[home[destination]] if home[destination] >= 0 else None
        )
        name = f"partition {part.name}" if part else "the terminals in no partition"
        if name in seen:
            continue
        seen.add(name)
        sentences.append(
            f"{name} must share the link {fabric.channel_name(channel)}, although a phy partition "
            "uses it: there are not enough links"
        )
    if sentences and partitions.strict:
        raise CheckFailed(f"{sentences[0]}; mode best-effort would go on")
    return sentences
