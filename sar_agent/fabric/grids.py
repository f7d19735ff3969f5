"""Generates networks of switches on a grid of any dimensions.

`torus:8x8x8,hosts=4`: each row is closed to a ring. A ring of two switches is one cable, since two
cables would be parallel; a ring of one switch has no cable.

`hyperx:8x12,hosts=7`: each row is fully meshed (J. H. Ahn et al., "HyperX: topology, routing, and
packaging of efficient large-scale networks", SC09). `cables=2` puts two cables between any two
switches of a row; the default is 1.

`hosts` is their number per switch; the default is 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from math import prod

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import add_hosts, require_counts, require_size, switch_guid
from sar_agent.fabric.model import Fabric

_TORUS = re.compile(r"torus:(\d{1,6}(?:x\d{1,6})*)(?:,hosts=(\d{1,6}))?")
_HYPERX = re.compile(r"hyperx:(\d{1,6}(?:x\d{1,6})*)((?:,(?:hosts|cables)=\d{1,6}){0,2})")

_Place = tuple[int, ...]
"""A switch: its coordinates, the last of which counts fastest."""
_Cables = Callable[[_Place], Iterator[tuple[int, _Place, int]]]
"""Of a switch: the port of each cable that is counted as its, and the switch and the port of the
other end."""


def _grid(spec: str, letter: str, dims: _Place, hosts: int, ports: int, cables: _Cables) -> Fabric:
    """Hosts are called `n0001`, …, switches by `letter` and their coordinates; a switch's first
    ports go to its hosts."""
    require_size(spec, ports, prod(dims) * (hosts + 1))
    builder = FabricBuilder(spec)
    number = {place: i for i, place in enumerate(product(*map(range, dims)))}
    for place, i in number.items():
        builder.add_switch(switch_guid(i), letter + "-".join(map(str, place)), ports)
    add_hosts(builder, len(number), hosts)
    for place, i in number.items():
        for port, far, far_port in cables(place):
            builder.add_link(i, port, number[far], far_port)
    return builder.build()


def torus_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `T0-0-0`, … (their coordinates).

    A switch's first ports go to hosts; then come, dimension by dimension, the port to the next
    switch and the port to the switch before; in a ring of two there is only one port. Raises
    `InputError` for any other text.
    """
    match = _TORUS.fullmatch(spec)
    if not match:
        raise InputError(
            f"{spec!r} is not a torus", remedy="write torus:8x8x8, or torus:8x8x8,hosts=4"
        )
    dims, hosts = tuple(map(int, match[1].split("x"))), int(match[2] or 1)
    require_counts(spec, *dims, hosts)
    widths = [min(k - 1, 2) for k in dims]

    def cables(place: _Place) -> Iterator[tuple[int, _Place, int]]:
        for d, k in enumerate(dims):
            if k > 2 or (k == 2 and place[d] == 0):
                after = (*place[:d], (place[d] + 1) % k, *place[d + 1 :])
                up = hosts + sum(widths[:d]) + 1
                yield up, after, up + (k > 2)

    return _grid(spec, "T", dims, hosts, hosts + sum(widths), cables)


def hyperx_fabric(spec: str) -> Fabric:
    """The fabric of a spec: hosts `n0001`, …, switches `X0-0`, … (their coordinates).

    A switch's first ports go to hosts; then come, dimension by dimension, the cables to the others
    of its row in their order. Raises `InputError` for any other text.
    """
    match = _HYPERX.fullmatch(spec)
    pairs = [part.split("=") for part in match[2].split(",")[1:]] if match else []
    given = {key: int(number) for key, number in pairs}
    if not match or len(given) < len(pairs):
        raise InputError(
            f"{spec!r} is not a HyperX", remedy="write hyperx:8x12,hosts=7, or also cables=2"
        )
    dims = tuple(map(int, match[1].split("x")))
    hosts, parallel = given.get("hosts", 1), given.get("cables", 1)
    require_counts(spec, *dims, hosts, parallel)
    widths = [parallel * (k - 1) for k in dims]

    def cables(place: _Place) -> Iterator[tuple[int, _Place, int]]:
        for d, k in enumerate(dims):
            first = hosts + sum(widths[:d]) + 1
            for other, cable in product(range(place[d] + 1, k), range(parallel)):
                far = (*place[:d], other, *place[d + 1 :])
                port, far_port = first + (other - 1) * parallel, first + place[d] * parallel
                yield port + cable, far, far_port + cable

    return _grid(spec, "X", dims, hosts, hosts + sum(widths), cables)
