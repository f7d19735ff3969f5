"""The trees of pftree-2016's simulations (Table 3), with a partition of victims and one of the
rest.

Victims are drawn at random, the same number under every leaf switch. The paper draws them again for
each of its 50,000 simulations; here each seed is one draw with its own routes and some thousand
simulations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, Bool
from sar_agent.fabric.xgft import parse_xgft, xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partition, Partitions, Policy, make_partitions
from sar_agent.routing.engine import Engine, Options, load_engine
from sar_agent.routing.pftree import PFTreeExt
from sar_agent.routing.routes import Routes
from sar_lab.research.papers.pftree_printed import (
    PFTreeAsPrinted,
    PFTreeExtAsPrinted,
    PFTreeFirstMarked,
    PFTreeOneShort,
    PFTreeWtAsPrinted,
)


@dataclass(frozen=True)
class Table3Tree:
    """A row of Table 3."""

    nodes: int
    spec: str
    oversubscription: int
    """Hosts of a leaf switch for each of its uplinks."""
    victims: int

    @property
    def leaves(self) -> int:
        return parse_xgft(self.spec).m[1]

    @property
    def roots(self) -> int:
        return parse_xgft(self.spec).w[1]


TREES = tuple(
    Table3Tree(*line)
    for line in (
        (32, "xgft:2;8,4;1,4", 2, 8),
        (48, "xgft:2;12,4;1,4", 3, 12),
        (64, "xgft:2;16,4;1,4", 4, 16),
        (128, "xgft:2;16,8;1,8", 2, 32),
        (192, "xgft:2;24,8;1,8", 3, 48),
        (256, "xgft:2;32,8;1,8", 4, 64),
        (512, "xgft:2;32,16;1,16", 2, 128),
        (768, "xgft:2;48,16;1,16", 3, 192),
        (1024, "xgft:2;64,16;1,16", 4, 256),
    )
)


@dataclass(frozen=True)
class VictimDraw:
    """One tree with a random set of victims."""

    tree: Table3Tree
    fabric: Fabric
    victims: I32
    """int32[V], ascending."""
    others: I32
    """int32[N - V], ascending."""


def draw_victims(tree: Table3Tree, seed: int) -> VictimDraw:
    """Draws the victims of a tree; a seed always gives the same ones."""
    random = np.random.default_rng([tree.nodes, seed])
    fabric = xgft_fabric(tree.spec)
    by_leaf = np.argsort(fabric.terminal_switch, kind="stable").reshape(tree.leaves, -1)
    each = tree.victims // tree.leaves
    victims = np.sort(random.permuted(by_leaf, axis=1)[:, :each].ravel()).astype(np.int32)
    everyone = np.arange(fabric.terminals, dtype=np.int32)
    return VictimDraw(tree, fabric, victims, np.setdiff1d(everyone, victims))


def partitions_of(draw: VictimDraw, weights: dict[int, float] | None = None) -> Partitions:
    """The victims' partition with policy `phy`, which only -ext respects, and the rest without
    one."""
    return make_partitions(
        (Partition("victim", 1, draw.victims, Policy.PHY), Partition("rest", 2, draw.others)),
        draw.fabric,
        strict=True,
        weight=weights or {},
    )


def routed(draw: VictimDraw, engine: str, weights: dict[int, float] | None = None) -> Routes:
    """Raises `CheckFailed` where the policies cannot be met."""
    options = Options(partitions=partitions_of(draw, weights), max_lanes=8)
    return _engine(engine).route(draw.fabric, JobMix(()), options)


class PFTreeExtNoQuota(PFTreeExt):
    """pFTree-Ext whose `phy` partitions have no quota: a way up for each host of a leaf, as
    Algorithm 3 takes the least loaded port and prints no limit, but never the last one, which
    the others need. Our engine gives them their share of the hosts."""

    name = "pftree-ext-no-quota"

    def quotas(self, fabric: Fabric, partitions: Partitions, higher: Bool) -> I32:
        """int32[P + 1, S]."""
        ups = np.bincount(fabric.channel_source[higher], minlength=fabric.switches)
        quota = super().quotas(fabric, partitions, higher)
        all_below = np.bincount(fabric.terminal_switch, minlength=fabric.switches)
        for number in np.unique(partitions.isolation):
            members = [p.terminals for p, i in zip(partitions.parts, partitions.isolation,
                       strict=True) if i == number and p.policy is Policy.PHY]  # fmt: skip
            if members:
                at = fabric.terminal_switch[np.unique(np.concatenate(members))]
                below = np.bincount(at, minlength=fabric.switches)
                most = np.where(below < all_below, ups - 1, ups)
                quota[number] = np.maximum(1, np.minimum(below, most))
        return quota


@cache
def _engine(name: str) -> Engine:
    known = (
        PFTreeAsPrinted, PFTreeFirstMarked, PFTreeOneShort, PFTreeExtAsPrinted, PFTreeWtAsPrinted,
        PFTreeExtNoQuota,
    )  # fmt: skip
    ours = {e.name: e for e in known}
    return ours[name]() if name in ours else load_engine(name)
