"""Fabrics with odd names."""

from __future__ import annotations

import random

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from tests.data import data_path

SWITCHES = (
    "MF0;isw-r1:MQM8700/U1", "MF0;isw-r2:MQM8700/U1", "leaf 1 # a \\", 'the "quoted" one',
    "a,b[1-2]", "0c42a103007a1e0a", "0x0c42a103007a1e0b", "9" * 21, "LEAF7", "leaf7", "root",
    "island1", "s" * 90, "Nodes=n1", "SwitchName=x", "é", "twin", "twin", "sw.example.org", "12",
    "13", "x1-9", "-", "x[", "y portguid 0x0000000000000001: 'z')",
    "z guid 0x0000000000000002 (y):", "7 valid lids dumped", "{ SW Ports:24 }",
)  # fmt: skip


HOSTS = (
    "cn{:02d}b", "cn{:02d}B", "r1-n{}-gpu", "n{:04d}", "n{}", "N{}", "a.b.c-{}", "0c42a1030{:x}",
    "x" + "1" * 18 + "{:03d}", "{:02d}", "q_{}.x", "node-{}x{}",
)  # fmt: skip


def odd_names(seed: int) -> Fabric:
    """Leaf switches with odd descriptions under two spines, and hosts with odd names."""
    choice = random.Random(seed)
    builder = FabricBuilder("odd names")
    leaves = choice.sample(SWITCHES, 12)
    spines = [builder.add_switch(0x10 + n, name, 40) for n, name in enumerate(("root", "x y"))]
    used: set[str] = set()
    for place, name in enumerate(leaves):
        leaf = builder.add_switch(0x100 + place, name, 40)
        for port, spine in enumerate(spines, 30):
            builder.add_link(leaf, port, spine, place + 1)
        for port in range(1, 9):
            host = choice.choice(HOSTS).format(choice.randrange(120), choice.randrange(9))
            if host not in used:
                used.add(host)
                builder.add_terminal(0x1000 + len(used), host, host, leaf, port)
    return builder.build()


def fabric_of(name: str) -> Fabric:
    if name.startswith("odd"):
        return odd_names(int(name.split()[1]))
    return load_fabric(name if ":" in name else data_path(f"{name}.ibnetdiscover"))
