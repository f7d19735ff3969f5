"""Rings, tori and Dragonflies with a host or more at each switch, and regular shortest paths on
them, in plain Python: what lanes are tried on."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.routing import Routes

Step = Callable[[int, int], int]
"""(switch, target switch) → the next switch."""


def built(switches: int, cables: list[tuple[int, int]], hosts: int = 1) -> Fabric:
    """Cables in the order given; hosts take the first ports."""
    builder = FabricBuilder("grid")
    used = [hosts] * switches
    ports = hosts + max(sum(s in cable for cable in cables) for s in range(switches))
    for s in range(switches):
        builder.add_switch(1 + s, f"s{s}", ports)
    for a, b in cables:
        used[a], used[b] = used[a] + 1, used[b] + 1
        builder.add_link(a, used[a], b, used[b])
    for s, h in itertools.product(range(switches), range(hosts)):
        n = s * hosts + h
        builder.add_terminal(0x10000 + 16 * n + 1, f"n{n + 1:03d} HCA-1", f"n{n + 1:03d}", s, 1 + h)
    return builder.build()


def torus(sizes: tuple[int, ...], hosts: int = 1) -> Fabric:
    """Rings of three and more in each dimension; a ring is a torus of one."""
    points = list(itertools.product(*map(range, sizes)))
    cables = []
    for point, (axis, size) in itertools.product(points, enumerate(sizes)):
        far = tuple((x + 1) % size if i == axis else x for i, x in enumerate(point))
        cables.append((points.index(point), points.index(far)))
    return built(len(points), cables, hosts)


def by_dimension(sizes: tuple[int, ...]) -> Step:
    """The shorter way round in the first dimension that differs; half way round upwards."""
    points = list(itertools.product(*map(range, sizes)))

    def step(here: int, there: int) -> int:
        a, b = points[here], points[there]
        axis = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        size, ahead = sizes[axis], (b[axis] - a[axis]) % sizes[axis]
        up = ahead <= size - ahead
        return points.index(
            tuple((x + (1 if up else -1)) % size if i == axis else x for i, x in enumerate(a))
        )

    return step


def dragonfly(a: int, h: int) -> tuple[Fabric, Step]:
    """a · h + 1 groups of `a` switches, one global cable between each two groups; local, global,
    local and nothing else."""
    groups = a * h + 1
    cables = [
        (g * a + i, g * a + j)
        for g in range(groups)
        for i, j in itertools.combinations(range(a), 2)
    ]
    gate = {}
    for g, other in itertools.permutations(range(groups), 2):
        gate[g, other] = g * a + ((other - g) % groups - 1) // h
        if g < other:
            cables.append((gate[g, other], other * a + ((g - other) % groups - 1) // h))

    def step(here: int, there: int) -> int:
        g, other = here // a, there // a
        if g == other:
            return there
        return gate[g, other] if here != gate[g, other] else gate[other, g]

    return built(groups * a, cables), step


def routes_by(fabric: Fabric, step: Step) -> Routes:
    """Tables that go where `step` says."""
    port = {
        (int(s), int(t)): int(p)
        for s, t, p in zip(
            fabric.channel_source, fabric.channel_target, fabric.channel_port, strict=True
        )
    }
    egress = np.empty((1, fabric.destinations, fabric.switches), np.uint8)
    roots = fabric.destination_switch.tolist()
    for d, root in enumerate(roots):
        for s in range(fabric.switches):
            last = int(fabric.destination_port[d])
            egress[0, d, s] = last if s == root else port[s, step(s, root)]
    return Routes("steps", fabric.digest, egress)
