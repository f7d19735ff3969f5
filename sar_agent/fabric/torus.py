"""Generates tori: switches on a grid of any dimensions, each row of which is closed to a ring.

`torus:8x8x8,hosts=4` has 4 hosts per switch; the default is 1. A ring of two switches is one cable,
since two cables would be parallel; a ring of one switch has no cable.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import add_hosts, require_counts, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_SPEC = re.compile(r"torus:(\d{1,6}(?:x\d{1,6})*)(?:,hosts=(\d{1,6}))?")


def torus_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `T0-0-0`, … (their coordinates; the last
    counts fastest).

    A switch's first ports go to hosts; then come, dimension by dimension, the port to the next
    switch and the port to the switch before; in a ring of two there is only one port. Raises
    `InputError` for any other text.
    """
    match = _SPEC.fullmatch(spec)
    if not match:
        raise InputError(
            f"{spec!r} is not a torus", remedy="write torus:8x8x8, or torus:8x8x8,hosts=4"
        )
    dims, hosts = tuple(map(int, match[1].split("x"))), int(match[2] or 1)
    require_counts(spec, *dims, hosts)
    require_size(spec, hosts + sum(min(k - 1, 2) for k in dims), prod(dims) * (hosts + 1))
    builder = FabricBuilder(spec)
    places = list(product(*map(range, dims)))
    number = {place: i for i, place in enumerate(places)}
    up, port = [], hosts
    for k in dims:
        up.append(port + 1)
        port += min(k - 1, 2)
    for place, i in number.items():
        builder.add_switch(switch_guid(i), "T" + "-".join(map(str, place)), port)
    add_hosts(builder, len(places), hosts)
    for place, i in number.items():
        for d, k in enumerate(dims):
            if k > 2 or (k == 2 and place[d] == 0):
                after = (*place[:d], (place[d] + 1) % k, *place[d + 1 :])
                builder.add_link(i, up[d], number[after], up[d] + (k > 2))
    return builder.build()
