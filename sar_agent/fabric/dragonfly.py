"""Generates Dragonflies: groups of fully meshed switches; global cables join every two groups.

`dragonfly:a=16,p=8,h=8` has a switches per group, p hosts and h global cables per switch, and g
groups. The default of g is the maximum, a·h + 1, where every two groups share one cable. The
arrangement is the absolute one (Hastings et al., CLUSTER 2015): global port k of a group, k = 0 …
a·h - 1 counted over its switches, leads to group k, or k + 1 from the group's own number on. With
fewer groups the same is repeated with the remaining ports, as long as they suffice for all pairs;
up to g - 2 ports of a group stay empty.
"""

from __future__ import annotations

import re

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import add_hosts, require_counts, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_SPEC = re.compile(r"dragonfly:((?:[aphg]=\d{1,6})(?:,[aphg]=\d{1,6})*)")
_REMEDY = "write dragonfly:a=SWITCHES,p=HOSTS,h=GLOBALS, and g=GROUPS for fewer than a*h+1 groups"


def dragonfly_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `G0-0`, … (group, index in it).

    A switch's ports 1 … p go to hosts, the next a - 1 to the others of its group in their order,
    the last h are global. Raises `InputError` for any other text.
    """
    match = _SPEC.fullmatch(spec)
    pairs = [part.split("=") for part in match[1].split(",")] if match else []
    given = {key: int(number) for key, number in pairs}
    if len(given) < len(pairs) or not {"a", "p", "h"} <= set(given):
        raise InputError(f"{spec!r} is not a Dragonfly", remedy=_REMEDY)
    a, p, h = (given[key] for key in "aph")
    g = given.get("g", a * h + 1)
    require_counts(spec, a, p, h, g)
    if g > a * h + 1:
        raise InputError(
            f"{spec!r} has {a * h} global cables per group, too few to reach {g - 1} others",
            remedy=f"give at most g={a * h + 1}",
        )
    require_size(spec, p + a - 1 + h, g * a * (p + 1))
    builder = FabricBuilder(spec)
    for number in range(g * a):
        name = f"G{number // a}-{number % a}"
        builder.add_switch(switch_guid(number), name, p + a - 1 + h)
    add_hosts(builder, g * a, p)
    for group in range(g):
        for low in range(a):
            for high in range(low + 1, a):
                builder.add_link(group * a + low, p + high, group * a + high, p + low + 1)

    def global_end(group: int, k: int) -> tuple[int, int]:
        return group * a + k // h, p + a + k % h

    rounds = a * h // (g - 1) if g > 1 else 0
    for turn in range(rounds):
        first = turn * (g - 1)
        for group in range(g):
            for other in range(group + 1, g):
                ends = global_end(group, first + other - 1), global_end(other, first + group)
                builder.add_link(*ends[0], *ends[1])
    return builder.build()
