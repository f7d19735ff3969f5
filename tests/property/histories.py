"""Tables that change and fabrics that break, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.routing import Routes

Step = tuple[Fabric, Routes]


def history(fabric: Fabric, random: Random, steps: int) -> Iterator[Step]:
    """Routes of trees drawn at random, whole ones or single entries redrawn in each step, while
    links, terminals and switches die and come back; some tables are broken on purpose."""
    whole = fabric
    offsets, lanes = random.choice([1, 1, 2]), random.choice([1, 1, 2])
    shape = (offsets, fabric.destinations, fabric.switches)
    egress = np.full(shape, 255, np.uint8)
    level = np.zeros(shape, np.uint8)
    for step in range(steps):
        if step:
            fabric = _break(whole, fabric, random)
        for o in range(offsets):
            for d in range(fabric.destinations):
                if not _leads(fabric, egress[o, d], d):
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
        yield fabric, replace(routes)


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
    what = random.randrange(8)
    if what == 0:
        return fabric.with_links_down([random.randrange(fabric.channels)])
    if what == 1:
        return fabric.with_links_down([], [random.randrange(fabric.terminals)])
    if what == 2:
        return fabric.with_switches_down([random.randrange(fabric.switches)])
    return whole if what == 3 else fabric
