"""Generates extended generalized fat trees, XGFT(h; m1, …, mh; w1, …, wh).

Labels are as in Rodriguez et al., Oblivious Routing Schemes in XGFTs, Section II: a node of level l
is (x_h, …, x_{l+1}, y_l, …, y_1); its parents replace digit x_{l+1} by each y_{l+1} in [0,
w_{l+1}), its children replace y_l by each x_l in [0, m_l). Level 0 are the hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import host_adder, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_SPEC = re.compile(r"^xgft:(\d+);([\d,]+);([\d,]+)$")


@dataclass(frozen=True)
class Xgft:
    """Height h, children per level m (m[0] = m1), parents per level w (w[0] = w1)."""

    m: tuple[int, ...]
    w: tuple[int, ...]

    @property
    def height(self) -> int:
        return len(self.m)

    def nodes(self, level: int) -> int:
        """The number of nodes of a level."""
        return prod(self.m[level:]) * prod(self.w[:level])

    def parent(self, level: int, index: int, up: int) -> int:
        """Index at level + 1 of the up-th parent of node `index` of `level`.

        Indices read the label as a mixed-radix number, x_h most significant, y_1 least.
        """
        low = prod(self.w[:level])
        tail, rest = index % low, index // low
        return (rest // self.m[level] * self.w[level] + up) * low + tail

    def child_digit(self, level: int, index: int) -> int:
        """x_{l+1}: the index of the node among its parents' children."""
        return index // prod(self.w[:level]) % self.m[level]


def parse_xgft(spec: str) -> Xgft:
    """`xgft:3;12,12,12;1,12,12` to its parameters. Raises `InputError` for any other text."""
    match = _SPEC.match(spec)
    if not match:
        raise InputError(
            f"{spec!r} is not an XGFT",
            remedy="write xgft:HEIGHT;m1,…,mh;w1,…,wh, e.g. xgft:2;4,4;1,2",
        )
    height = int(match[1])
    m, w = ([int(d) for d in match[group].split(",") if d] for group in (2, 3))
    if len(m) != height or len(w) != height or height < 1 or min(m + w) < 1:
        raise InputError(
            f"{spec!r} has height {height} but {len(m)} child and {len(w)} parent counts",
            remedy="give as many positive numbers in each list as the height says",
        )
    tree = Xgft(tuple(m), tuple(w))
    radix = [m[level] + (w[level + 1] if level + 1 < height else 0) for level in range(height)]
    require_size(spec, max(radix), sum(tree.nodes(level) for level in range(height + 1)))
    return tree


def xgft_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `S1-0`, … (level, index).

    A switch's ports 1 … m_l go down, in the order of its children, the next w_{l+1} go up. With
    w1 > 1 every host has w1 ports, one to each of its leaf switches.
    """
    tree = parse_xgft(spec)
    builder = FabricBuilder(spec)
    first = add_switch_tree(builder, tree)
    add_host = host_adder(builder, tree.nodes(0))
    for host in range(tree.nodes(0)):
        port = tree.child_digit(0, host) + 1
        add_host(host, [(first[1] + tree.parent(0, host, up), port) for up in range(tree.w[0])])
    return builder.build()


def add_switch_tree(builder: FabricBuilder, tree: Xgft) -> list[int]:
    """Add all switches and the cables between them; returns the index of each level's first
    switch."""
    first = [0]
    for level in range(1, tree.height + 1):
        ports = tree.m[level - 1] + (tree.w[level] if level < tree.height else 0)
        first.append(first[-1] + (tree.nodes(level - 1) if level > 1 else 0))
        for index in range(tree.nodes(level)):
            builder.add_switch(switch_guid(index, level), f"S{level}-{index}", ports)
    for level in range(1, tree.height):
        for index in range(tree.nodes(level)):
            for up in range(tree.w[level]):
                builder.add_link(
                    first[level] + index,
                    tree.m[level - 1] + up + 1,
                    first[level + 1] + tree.parent(level, index, up),
                    tree.child_digit(level, index) + 1,
                )
    return first
