"""The kernel that every proof is made of, beside a plain walk of each packet."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

from sar_agent.check.walk import CIRCLE, FINE, no_dependencies, read_only, walk
from sar_agent.check.wiring import wiring_of
from sar_agent.fabric import Fabric
from tests.examples import share
from tests.worlds.histories import tree
from tests.worlds.plain_walk import walk_plainly
from tests.worlds.table_pairs import small


def table(fabric: Fabric, random: Random) -> np.ndarray:
    """uint8[D, S]: a tree for each destination, now and then with entries that lead anywhere."""
    rows = np.stack([tree(fabric, d, random) for d in range(fabric.destinations)])
    for _ in range(random.choice([0, 0, 1, 3])):
        d, s = random.randrange(len(rows)), random.randrange(fabric.switches)
        rows[d, s] = random.choice([0, 255, random.randrange(1, int(fabric.switch_ports[s]) + 1)])
    return rows


def agrees(seed: int, tables: int, *, by_hop: bool) -> Counter[str]:
    """Asserts that both find the same circles and the same dependencies; how often there were
    circles."""
    random = Random(seed)
    fabric = small(random, hosts_everywhere=bool(random.randrange(2)))
    lanes, hop_lane = (2 if by_hop else 1), None
    if by_hop:
        ports = int(fabric.switch_ports.max()) + 1
        shape = (fabric.switches, ports, ports)
        hop_lane = np.random.default_rng(seed).integers(0, lanes, shape, np.uint8)
    wiring = wiring_of(fabric, lanes, hop_lane)
    rows = tuple(read_only(table(fabric, random)) for _ in range(tables))
    none = read_only(np.empty((fabric.destinations, 0), np.uint8))
    seen, size = Counter[str](), int(wiring.ports)
    for d in range(fabric.destinations):
        planes, selected = no_dependencies(wiring), np.zeros(fabric.destinations, np.bool_)
        selected[d] = True
        handed = none.astype(np.uint16)
        outcome, _ = walk(wiring, rows, (none,) * tables, handed, selected, False, planes)
        plain = walk_plainly(wiring, rows, d)
        assert (outcome[d] == CIRCLE) == (plain is None), (seed, d)
        seen["circle" if plain is None else "fine" if outcome[d] == FINE else "drop"] += 1
        if plain is None:
            continue
        plane, at = np.nonzero(planes)
        found = zip(plane, at // size // size, at // size % size, at % size, strict=True)
        assert {tuple(map(int, one)) for one in found} == plain, (seed, d)
    return seen


def test_circles_and_dependencies_of_one_table() -> None:
    seen = sum((agrees(s, 1, by_hop=s % 2 == 0) for s in range(share(300))), Counter[str]())
    assert seen["circle"] > 0 and seen["fine"] > 0, seen


def test_circles_and_dependencies_of_mixtures() -> None:
    seen = sum((agrees(s, 2, by_hop=s % 2 == 0) for s in range(share(300))), Counter[str]())
    assert min(seen["circle"], seen["fine"], seen["drop"]) > 0, seen
