"""Generates HyperX networks: switches on a grid, each row of which is fully meshed.

J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale networks",
SC09. `hyperx:8x12,hosts=7` has 7 hosts per switch; the default is 1. `cables=2` puts two cables
between any two switches of a row; the default is 1.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import add_hosts, require_counts, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_SPEC = re.compile(r"hyperx:(\d{1,6}(?:x\d{1,6})*)((?:,(?:hosts|cables)=\d{1,6}){0,2})")


def hyperx_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `X0-0`, … (their coordinates; the last
    counts fastest).

    A switch's first ports go to hosts; then come, dimension by dimension, the cables to the others
    of its row in their order. Raises `InputError` for any other text.
    """
    match = _SPEC.fullmatch(spec)
    pairs = [part.split("=") for part in match[2].split(",")[1:]] if match else []
    given = {key: int(number) for key, number in pairs}
    if not match or len(given) < len(pairs):
        raise InputError(
            f"{spec!r} is not a HyperX", remedy="write hyperx:8x12,hosts=7, or also cables=2"
        )
    dims = tuple(map(int, match[1].split("x")))
    hosts, cables = given.get("hosts", 1), given.get("cables", 1)
    require_counts(spec, *dims, hosts, cables)
    ports = hosts + cables * sum(k - 1 for k in dims)
    require_size(spec, ports, prod(dims) * (hosts + 1))
    builder = FabricBuilder(spec)
    places = list(product(*map(range, dims)))
    number = {place: i for i, place in enumerate(places)}
    first = [hosts + 1 + cables * sum(k - 1 for k in dims[:d]) for d in range(len(dims))]
    for place, i in number.items():
        builder.add_switch(switch_guid(i), "X" + "-".join(map(str, place)), ports)
    add_hosts(builder, len(places), hosts)
    for place, i in number.items():
        for d, k in enumerate(dims):
            for other in range(place[d] + 1, k):
                far = (*place[:d], other, *place[d + 1 :])
                near_port = first[d] + (other - 1) * cables
                far_port = first[d] + place[d] * cables
                for cable in range(cables):
                    builder.add_link(i, near_port + cable, number[far], far_port + cable)
    return builder.build()
