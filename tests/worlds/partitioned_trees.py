"""Trees with partitions."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.jobs.partitions import Partition, Partitions, Policy, make_partitions
from sar_agent.routing import Routes


def tree(leaves: list[str], spines: int) -> Fabric:
    """Two levels; a host for each letter, named by it; leaf switches L1 …, roots R1 …"""
    builder = FabricBuilder("figure")
    for n in range(len(leaves)):
        builder.add_switch(1 + n, f"L{n + 1}", 36)
    for n in range(spines):
        builder.add_switch(101 + n, f"R{n + 1}", 36)
    for n, hosts in enumerate(leaves):
        for port, host in enumerate(hosts, 1):
            builder.add_terminal(1000 + ord(host), f"{host} HCA-1", host, n, port)
        for spine in range(spines):
            builder.add_link(n, 20 + spine, len(leaves) + spine, 1 + n)
    return builder.build()


def partitioned(fabric: Fabric, *parts: str, **given: object) -> Partitions:
    """`"ac phy"`: hosts a and c, policy phy; named 1, 2, … in that order."""
    found = []
    for number, text in enumerate(parts, 1):
        hosts, _, policy = text.partition(" ")
        terminals = sorted(t for host in hosts for t in fabric.hosts[host])
        kind = Policy[(policy or "def").upper()]
        found.append(Partition(str(number), number, np.array(terminals, np.int32), kind))
    return make_partitions(found, fabric, **given)


def roots(fabric: Fabric, routes: Routes, hosts: str, source: str) -> dict[str, str]:
    """By host, the root over which the leaf switch `source` reaches it."""
    at = fabric.switch_name.index(source)
    channel = routes.next_channel(fabric)
    [terminal] = zip(*(fabric.hosts[host] for host in hosts), strict=True)
    return {
        host: fabric.switch_name[fabric.channel_target[channel[t, at]]]
        for host, t in zip(hosts, terminal, strict=True)
    }
