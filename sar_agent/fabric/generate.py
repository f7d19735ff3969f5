"""Common parts of the generators: GUIDs, names of hosts, and limits of size."""

from __future__ import annotations

from collections.abc import Callable

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder

MOST_PORTS, MOST_NODES = 254, 200_000


def switch_guid(number: int, level: int = 1) -> int:
    """The GUID of a generated switch; `level` distinguishes kinds of switches."""
    return 0x0008F10400000000 + (level << 24) + number


def require_counts(spec: str, *counts: int) -> None:
    """Raises `InputError` where one is 0."""
    if min(counts) < 1:
        raise InputError(f"{spec!r} has a count of 0", remedy="1 is the least of each")


def require_size(spec: str, ports: int, nodes: int) -> None:
    """Raises `InputError` for switches or subnets that exceed InfiniBand's limits."""
    if ports > MOST_PORTS:
        raise InputError(
            f"{spec!r} needs switches of {ports} ports", remedy=f"{MOST_PORTS} is the most"
        )
    if nodes > MOST_NODES:
        raise InputError(f"{spec!r} has more nodes than any InfiniBand subnet", remedy="shrink it")


def host_adder(builder: FabricBuilder, hosts: int) -> Callable[[int, list[tuple[int, int]]], None]:
    """A function that adds host number 0 … hosts - 1, named `n0001` …, and cables each (switch,
    port) of a list to a port of its HCA."""
    width = max(3, len(str(hosts)))

    def add(host: int, ends: list[tuple[int, int]]) -> None:
        name, place = f"n{host + 1:0{width}d}", builder.next_position()
        node_guid = 0x0002C90300000000 + (host << 8)
        for rail, (switch, port) in enumerate(ends, start=1):
            builder.add_terminal(
                node_guid + rail,
                f"{name} HCA-1",
                name,
                switch,
                port,
                node_guid=node_guid,
                port_number=rail,
                position=place,
            )

    return add


def add_hosts(builder: FabricBuilder, switches: int, each: int) -> None:
    """Hosts with one port at the first ports of each switch."""
    add_host = host_adder(builder, switches * each)
    for host in range(switches * each):
        add_host(host, [(host // each, host % each + 1)])
