"""Parallel generalized fat trees: XGFTs with several cables between two switches."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import host_adder, switch_guid
from sar_agent.fabric.xgft import Xgft


@dataclass(frozen=True)
class Pgft:
    """PGFT(h; m; w; p): a switch of level l has p[l - 1] cables to each parent."""

    tree: Xgft
    p: tuple[int, ...]

    def parent_port(self, level: int, destination: int) -> tuple[int, int]:
        """D-mod-k of a switch of `level` (Zahavi, 2010): the parent and the cable towards it."""
        w, p = self.tree.w[level], self.p[level - 1]
        port = destination // prod(self.tree.w[:level]) % (w * p)
        return port % w, port // w


def pgft_fabric(shape: Pgft) -> Fabric:
    """Switch `S1-0`, … (level, index); hosts in the order of the leaves."""
    tree, builder = shape.tree, FabricBuilder("pgft")
    nodes = [(level, i) for level in range(1, tree.height + 1) for i in range(tree.nodes(level))]
    cables = [
        (level, index, up, cable)
        for level in range(1, tree.height)
        for index in range(tree.nodes(level))
        for up in range(tree.w[level])
        for cable in range(shape.p[level - 1])
    ]
    hosts = range(tree.nodes(0))
    number = {node: i for i, node in enumerate(nodes)}
    for level, index in nodes:
        builder.add_switch(switch_guid(index, level), f"S{level}-{index}", 40)
    for level, index, up, cable in cables:
        parent = level + 1, tree.parent(level, index, up)
        below = tree.child_digit(level, index) * shape.p[level - 1] + cable + 1
        above = tree.m[level - 1] * (shape.p[level - 2] if level > 1 else 1)
        above += up * shape.p[level - 1] + cable + 1
        builder.add_link(number[level, index], above, number[parent], below)
    add_host = host_adder(builder, len(hosts))
    for host in hosts:
        add_host(host, [(number[1, tree.parent(0, host, 0)], tree.child_digit(0, host) + 1)])
    return builder.build()
