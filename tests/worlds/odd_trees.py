"""Trees as sites grow them: several rails, storage and management switches in odd places."""

from __future__ import annotations

from random import Random

from sar_agent.fabric import Fabric, Kind
from sar_agent.fabric.builder import FabricBuilder


class _Site:
    """Adds switches, cables and hosts; every switch takes its next free port."""

    def __init__(self, name: str, seed: int) -> None:
        self.builder = FabricBuilder(name)
        self.random = Random(seed)
        self.used: list[int] = []
        self.guids = self.random.sample(range(1 << 20, 1 << 24), 4096)
        self.hosts = 0

    def switch(self, name: str) -> int:
        self.used.append(0)
        return self.builder.add_switch(self.guids.pop(), name, 200)

    def switches(self, name: str, count: int) -> list[int]:
        return [self.switch(f"{name}-{i}") for i in range(count)]

    def port(self, switch: int) -> int:
        self.used[switch] += 1
        return self.used[switch]

    def cable(self, a: int, b: int, count: int = 1) -> None:
        for _ in range(count):
            self.builder.add_link(a, self.port(a), b, self.port(b))

    def host(self, rails: list[int], kind: Kind = Kind.COMPUTE) -> None:
        name = f"{kind.name.lower()}{self.hosts:05d}"
        self.hosts += 1
        for rail, switch in enumerate(rails, 1):
            guid = (1 << 40) + self.hosts * 8 + rail
            self.builder.add_terminal(
                guid, f"{name} HCA-{rail}", name, switch, self.port(switch), kind=kind
            )


def site(
    *, rails: int = 2, pods: int = 2, leaves: int = 3, spines: int = 3, cores: int = 3,
    hosts: int = 4, storage: int = 2, bridges: int = 0, management: int = 3, seed: int = 0,
    joined: bool = False,
) -> Fabric:  # fmt: skip
    """Each rail is a three-level tree of its own, or all have the same cores (`joined`). Else rails
    meet only at storage leaves, which are cabled to some cores of every rail. Management switches
    are cabled to one or two switches of any level, or to each other.

    `bridges`: leaves cabled to the spines of one pod in every rail; without `storage` they are all
    that joins the rails, so leaves of different rails share no root."""
    made = _Site(f"site-{rails}-{seed}", seed)
    below: list[list[list[int]]] = []
    tops: list[list[int]] = []
    middles: list[list[list[int]]] = []
    for rail in range(rails):
        tops.append(tops[0] if joined and rail else made.switches(f"core-{rail}", cores))
        below.append([])
        middles.append([])
        for pod in range(pods):
            middle = made.switches(f"spine-{rail}-{pod}", spines)
            leaf = made.switches(f"leaf-{rail}-{pod}", leaves)
            for a in middle:
                for b in leaf:
                    made.cable(a, b)
                for b in tops[rail]:
                    made.cable(a, b)
            below[rail].append(leaf)
            middles[rail].append(middle)
    for pod in range(pods):
        for n in range(leaves):
            for _ in range(hosts):
                made.host([below[rail][pod][n] for rail in range(rails)])
    for n, leaf in enumerate(made.switches("storage", storage)):
        for rail in range(1 if joined else rails):
            for k in range(2):
                made.cable(leaf, tops[rail][(n + k) % cores])
        for _ in range(3):
            made.host([leaf], Kind.STORAGE)
    for leaf in made.switches("bridge", bridges):
        for rail in range(rails):
            for spine in middles[rail][0]:
                made.cable(leaf, spine)
        made.host([leaf], Kind.STORAGE)
    everywhere = [
        s for rail in range(rails) for tier in (below, middles) for p in tier[rail] for s in p
    ]
    everywhere += tops[0]
    for switch in made.switches("management", management):
        for other in made.random.sample(everywhere, made.random.choice([1, 1, 2])):
            made.cable(switch, other)
        everywhere += [switch] * (len(everywhere) // 3)
        for _ in range(made.random.choice([3, 4])):
            made.host([switch], Kind.OTHER)
    return made.builder.build()


def degraded(fabric: Fabric, share: float, seed: int) -> Fabric:
    """The fabric with a share of its cables down; it may fall apart."""
    cables = [c for c in range(fabric.channels) if c < fabric.channel_reverse[c]]
    return fabric.with_links_down(Random(seed).sample(cables, round(share * len(cables))))
