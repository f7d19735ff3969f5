"""Generates HyperX networks: switches on a grid, each row of which is fully meshed.

J. H. Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale networks",
SC09. `hyperx:8x12,hosts=7` has 7 hosts per switch; the default is 1. `cables=2` puts two cables
between any two switches of a row; the default is 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import host_adder, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_SPEC = re.compile(r"hyperx:(\d{1,6}(?:x\d{1,6})*)((?:,(?:hosts|cables)=\d{1,6}){0,2})")


@dataclass(frozen=True)
class HyperX:
    """The number of switches per dimension, of hosts per switch, and of cables per pair."""

    dims: tuple[int, ...]
    hosts: int = 1
    cables: int = 1


def parse_hyperx(spec: str) -> HyperX:
    """`hyperx:4x4,hosts=2` to its parameters. Raises `InputError` for any other text."""
    match = _SPEC.fullmatch(spec)
    pairs = [part.split("=") for part in match[2].split(",")[1:]] if match else []
    given = {key: int(number) for key, number in pairs}
    if not match or len(given) < len(pairs):
        raise InputError(
            f"{spec!r} is not a HyperX", remedy="write hyperx:8x12,hosts=7, or also cables=2"
        )
    shape = HyperX(tuple(map(int, match[1].split("x"))), **given)
    if min(*shape.dims, shape.hosts, shape.cables) < 1:
        raise InputError(f"{spec!r} has a count of 0", remedy="1 is the least of each")
    ports = shape.hosts + shape.cables * sum(k - 1 for k in shape.dims)
    require_size(spec, ports, prod(shape.dims) * (shape.hosts + 1))
    return shape


def hyperx_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `X0-0`, … (their coordinates; the last
    counts fastest).

    A switch's first ports go to hosts; then come, dimension by dimension, the cables to the others
    of its row in their order.
    """
    shape = parse_hyperx(spec)
    builder = FabricBuilder(spec)
    places = list(product(*map(range, shape.dims)))
    number = {place: i for i, place in enumerate(places)}
    first = [
        shape.hosts + 1 + shape.cables * sum(k - 1 for k in shape.dims[:d])
        for d in range(len(shape.dims))
    ]
    ports = shape.hosts + shape.cables * sum(k - 1 for k in shape.dims)
    for place, i in number.items():
        builder.add_switch(switch_guid(i), "X" + "-".join(map(str, place)), ports)
    add_host = host_adder(builder, len(places) * shape.hosts)
    for host in range(len(places) * shape.hosts):
        add_host(host, [(host // shape.hosts, host % shape.hosts + 1)])
    for place, i in number.items():
        for d, k in enumerate(shape.dims):
            for other in range(place[d] + 1, k):
                far = (*place[:d], other, *place[d + 1 :])
                near_port = first[d] + (other - 1) * shape.cables
                far_port = first[d] + place[d] * shape.cables
                for cable in range(shape.cables):
                    builder.add_link(i, near_port + cable, number[far], far_port + cable)
    return builder.build()
