"""Tables that change and fabrics that break, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.routing import Routes

Step = tuple[Fabric, Routes]


SHAPES = st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)])
"""LID offsets and lanes."""


def history(
    fabric: Fabric, random: Random, steps: int, of: tuple[int, int] = (1, 1)
) -> Iterator[Step]:
    """Routes of trees drawn at random, whole ones or single entries redrawn in each step, while
    links, terminals and switches die and come back, and cables are swapped; some tables are broken
    on purpose, or not mended."""
    whole = fabric
    offsets, lanes = of
    shape = (offsets, fabric.destinations, fabric.switches)
    egress = np.full(shape, 255, np.uint8)
    level = np.zeros(shape, np.uint8)
    for step in range(steps):
        if step:
            fabric = _break(whole, fabric, random)
        for o in range(offsets):
            for d in range(fabric.destinations):
                if not _leads(fabric, egress[o, d], d):
                    if random.random() < 0.98:
                        egress[o, d] = tree(fabric, d, random)
                elif random.random() < 0.2:
                    new = tree(fabric, d, random)
                    some = random.sample(range(fabric.switches), random.randint(1, 2))
                    mixed = egress[o, d].copy()
                    mixed[some] = new[some]
                    egress[o, d] = mixed if _leads(fabric, mixed, d) else new
                if random.random() < 0.1:
                    level[o, d, random.randrange(fabric.switches)] = random.randrange(lanes)
        routes = Routes(
            "random", fabric.digest, egress.copy(), level.copy() if lanes > 1 else None, lanes
        )
        if random.random() < 0.1:
            d, s = random.randrange(shape[1]), random.randrange(shape[2])
            routes.egress[0, d, s] = random.choice([*range(12), 255])
        yield fabric, routes


def tree(fabric: Fabric, d: int, random: Random) -> np.ndarray:
    """uint8[S]: a tree to destination d over live links, not of shortest paths."""
    row = np.full(fabric.switches, 255, np.uint8)
    root = int(fabric.destination_switch[d])
    row[root] = fabric.destination_port[d]
    reached = [root]
    while True:
        ways = [
            c
            for c in range(fabric.channels)
            if fabric.channel_up[c]
            and fabric.channel_target[c] in reached
            and fabric.channel_source[c] not in reached
        ]
        if not ways:
            return row
        c = random.choice(ways)
        row[fabric.channel_source[c]] = fabric.channel_port[c]
        reached.append(int(fabric.channel_source[c]))


def _leads(fabric: Fabric, row: np.ndarray, d: int) -> bool:
    """Whether every switch that can reach d does."""
    root = int(fabric.destination_switch[d])
    for s in range(fabric.switches):
        v, hops = s, 0
        while v != root:
            c = fabric.channel_by_port[v, row[v]]
            hops += 1
            if c < 0 or not fabric.channel_up[c] or hops > fabric.switches:
                break
            v = int(fabric.channel_target[c])
        if v != root and fabric.switch_up[s]:
            return False
    return bool(row[root] == fabric.destination_port[d])


def _break(whole: Fabric, fabric: Fabric, random: Random) -> Fabric:
    """Nothing, mostly; or something dies, or all that died is back."""
    what = random.randrange(10)
    if what == 0:
        return fabric.with_links_down([random.randrange(fabric.channels)])
    if what == 1:
        return fabric.with_links_down([], [random.randrange(fabric.terminals)])
    if what == 2:
        return fabric.with_switches_down([random.randrange(fabric.switches)])
    if what == 3:
        return _swapped(fabric, random)
    return whole if what == 4 else fabric


def _swapped(fabric: Fabric, random: Random) -> Fabric:
    """Two cables, a - b and c - d, are now a - d and c - b."""
    one, two = (random.randrange(fabric.channels) for _ in range(2))
    reverse, target = fabric.channel_reverse.copy(), fabric.channel_target.copy()
    back = reverse[[one, two]]
    ends = target[[one, two]]
    sources = fabric.channel_source[[one, two]]
    if one in (two, back[1]) or (ends[::-1] == sources).any():
        return fabric
    if not fabric.channel_up[[one, two]].all():
        return fabric
    target[[one, two]], target[back] = ends[::-1], sources[::-1]
    reverse[[one, two]], reverse[back] = back[::-1], [two, one]
    return replace(fabric, channel_target=target, channel_reverse=reverse)
