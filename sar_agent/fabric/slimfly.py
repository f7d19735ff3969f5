"""Generates Slim Flies: networks of diameter 2 whose switches form a McKay-Miller-Širáň graph.

M. Besta, T. Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC14.
`slimfly:5,hosts=4` has 2 q² = 50 switches of q = 5 and 4 hosts at each; the default is half as many
hosts as cables to other switches, as in the paper. q is an odd prime; prime powers are not served.

Switch (0, x, y) has cables to (0, x, y') where y - y' is in one set of generators, (1, m, c) to
(1, m, c') where c - c' is in another, and (0, x, y) to (1, m, c) where y = m x + c, all modulo q.
With a primitive root r and q = 4 w + d, d = 1 or -1, the sets are the even and the odd powers of r
(d = 1), or the even powers below 2 w and the odd ones from 2 w - 1 on, and the reverse (d = -1).
"""

from __future__ import annotations

import re
from itertools import combinations, product

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import add_hosts, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_SPEC = re.compile(r"slimfly:(\d{1,4})(?:,hosts=(\d{1,6}))?")


def generator_sets(q: int) -> tuple[frozenset[int], frozenset[int]]:
    """The differences of neighbours in the first and second half; both are closed under minus."""
    root = next(r for r in range(2, q + 1) if len({pow(r, k, q) for k in range(q - 1)}) == q - 1)
    powers = [pow(root, k, q) for k in range(q)]
    if q % 4 == 1:
        return frozenset(powers[: q - 1 : 2]), frozenset(powers[1 : q - 1 : 2])
    w2 = (q + 1) // 2
    return (
        frozenset(powers[0:w2:2] + powers[w2 - 1 : q - 1 : 2]),
        frozenset(powers[1:w2:2] + powers[w2:q:2]),
    )


def slimfly_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `A0-0`, … of the first half (x, y), `B0-0`,
    … of the second (m, c). A switch's first ports go to hosts; then come its cables to switches of
    its group, then those to the other half. Raises `InputError` for any other text."""
    match = _SPEC.fullmatch(spec)
    if not match:
        raise InputError(
            f"{spec!r} is not a Slim Fly", remedy="write slimfly:5 or slimfly:5,hosts=4"
        )
    q = int(match[1])
    if q < 3 or any(q % k == 0 for k in range(2, int(q**0.5) + 1)):
        raise InputError(
            f"{spec!r} needs an odd prime, not {q}", remedy="take 5, 7, 11, 13, 17 or 19"
        )
    cables = (3 * q - (1 if q % 4 == 1 else -1)) // 2  # of a switch to others
    hosts = int(match[2]) if match[2] else (cables + 1) // 2
    if hosts < 1:
        raise InputError(f"{spec!r} has a count of 0", remedy="1 is the least")
    require_size(spec, hosts + cables, 2 * q * q * (hosts + 1))
    builder = FabricBuilder(spec)
    number = {place: i for i, place in enumerate(product((0, 1), range(q), range(q)))}
    for (half, group, member), i in number.items():
        builder.add_switch(switch_guid(i), f"{'AB'[half]}{group}-{member}", hosts + cables)
    add_hosts(builder, len(number), hosts)
    used = [hosts] * len(number)
    for a, b in _pairs(q):
        near, far = number[a], number[b]
        used[near], used[far] = used[near] + 1, used[far] + 1
        builder.add_link(near, used[near], far, used[far])
    return builder.build()


def _pairs(q: int) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    sets = generator_sets(q)
    inside = [
        ((half, group, a), (half, group, b))
        for half in (0, 1)
        for group in range(q)
        for a, b in combinations(range(q), 2)
        if (b - a) % q in sets[half]
    ]
    across = [
        ((0, x, (m * x + c) % q), (1, m, c)) for x, m, c in product(range(q), range(q), range(q))
    ]
    return inside + across
