"""Random tables before and after a change."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np

from sar_agent.check import check_routes
from sar_agent.check.transition import Transition, Way, examine
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.routing import Routes
from tests.worlds.histories import history, tree
from tests.worlds.mixtures import enumerated


def drawn(fabric: Fabric, random: Random, lanes: int = 1) -> Routes | None:
    """Trees and service levels drawn at random that pass the check; None where none were found
    soon."""
    shape = (1, fabric.destinations, fabric.switches)
    for _ in range(60):
        egress, level = np.full(shape, 255, np.uint8), None
        for d in range(fabric.destinations):
            egress[0, d] = tree(fabric, d, random)
        if lanes > 1:
            level = np.array([random.randrange(lanes) for _ in range(egress.size)], np.uint8)
            level = level.reshape(shape)
        routes = Routes("drawn", fabric.digest, egress, level, lanes)
        if check_routes(fabric, routes).passed:
            return routes
    return None


def unconfirmed(random: Random) -> tuple[Fabric, Routes, Routes, Routes, np.ndarray] | None:
    """A fabric, three sound plans, the second installed over the first, mostly as the proof allows,
    and which entries (bool[1, D, S]) of the second some switches have not confirmed."""
    fabric = small(random)
    first, second, third = (drawn(fabric, random) for _ in range(3))
    if not (first and second and third):
        return None
    if examine(fabric, first, second).way is not Way.DIRECT and random.random() < 0.7:
        return None
    silent = np.zeros(second.egress.shape, np.bool_)
    for s in random.sample(range(fabric.switches), random.choice([1, 1, 1, 2])):
        silent[0, :, s] = True
        if random.random() < 0.3:  # a block of it was confirmed
            silent[0, : random.randrange(fabric.destinations), s] = False
    return fabric, first, second, third, silent


Pair = tuple[Fabric, Routes, Routes]


def small(random: Random, most: int = 5, *, hosts_everywhere: bool = True) -> Fabric:
    """3 to `most` switches in one piece, each with a host or only some, and up to four more
    cables."""
    size = random.randint(3, most)
    builder, used = FabricBuilder("small"), [0] * size

    def port(switch: int) -> int:
        used[switch] += 1
        return used[switch]

    for s in range(size):
        builder.add_switch(100 + s, f"s{s}", 12)
    some = range(size)
    for s in some if hosts_everywhere else sorted(random.sample(some, random.randint(2, size))):
        builder.add_terminal(900 + s, f"h{s} HCA-1", f"h{s}", s, port(s))
    cables = [(random.randrange(s), s) for s in range(1, size)]
    cables += [tuple(random.sample(range(size), 2)) for _ in range(random.randint(1, 4))]
    for a, b in cables:
        builder.add_link(a, port(a), b, port(b))
    return builder.build()


def redrawn(before: Routes, fabric: Fabric, random: Random) -> Routes:
    """`before` with other random trees, one after another, as long as the lanes suffice."""
    after = before
    for d in random.sample(range(fabric.destinations), fabric.destinations):
        egress = after.egress.copy()
        egress[0, d] = tree(fabric, d, random)
        other = replace(after, egress=egress)
        after = other if check_routes(fabric, other).passed else after
    return after


def random_pair(random: Random) -> Pair:
    """New tables that pass the check, and old ones that may be broken."""
    lanes = random.choice([1, 1, 2])
    while True:
        fabric, steps = small(random), random.choice([1, 1, 3])
        states = [r for f, r in history(fabric, random, 1, (1, lanes))]
        for _ in range(steps):
            egress = states[-1].egress.copy()
            for d in range(fabric.destinations):
                if random.random() < 0.5:
                    egress[0, d] = tree(fabric, d, random)
            states.append(replace(states[-1], egress=egress))
        before, after = states[0], states[-1]
        if random.random() < 0.3:
            d, s = random.randrange(fabric.destinations), random.randrange(fabric.switches)
            before.egress[0, d, s] = random.choice([*range(8), 255])
        if check_routes(fabric, after).passed:
            return fabric, before, after


def stages_hold(fabric: Fabric, before: Routes, after: Routes, found: Transition) -> None:
    """Every stage passes the check, and any mixture of it with the one before is safe."""
    for old, new in pairwise((before, *found.stages)):
        assert check_routes(fabric, new).passed
        assert enumerated(fabric, old, new) == ""
    if found.way is Way.STAGED:
        assert found.stages[-1] is after
    elif found.way is Way.FITTED:
        last = found.stages[-1].egress
        unmoved = (last != after.egress).any(axis=2)
        assert np.count_nonzero(unmoved) == found.unmoved > 0
        assert (last[unmoved] == before.egress[unmoved]).any()
