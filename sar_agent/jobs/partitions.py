"""Partitions: who may talk to whom, and how far apart their traffic is to be kept.

The policies are those of pFTree-Ext (pftree-2016, Table 1); groups, the cap on links of `phy`
partitions and weights per (node, partition) are what its Section 8.2 asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, Fabric

DEFAULT_KEY = 0x7FFF
"""The partition of management traffic, in which all ports are: it isolates nobody."""


class Policy(IntEnum):
    """How a partition is kept apart from others; lower ones are routed first."""

    PHY = 0
    """Shares no link."""
    VLANE = 1
    """Shares links only in a virtual lane of its own."""
    DEF = 2
    """As well as it goes."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Ports that may talk to each other."""

    name: str
    key: int
    """P_Key without the membership bit, 1 … 0x7ffe; 0 where it is no InfiniBand partition."""
    terminals: I32
    """int32[N], ascending."""
    policy: Policy = Policy.DEF
    group: str = ""
    """Partitions of one group may share links and lanes."""
    weight: Mapping[int, float] = field(default_factory=dict)
    """By terminal, where it weighs otherwise in this partition than in others."""


@dataclass(frozen=True, eq=False)
class Partitions:
    """All of them, and the policies for all."""

    parts: tuple[Partition, ...]
    strict: bool = True
    """Whether a policy that cannot be met is an error, else a warning."""
    phy_links_most: float = 1.0
    """Share of a switch's links up that `phy` partitions may take."""
    weight: Mapping[int, float] = field(default_factory=dict)
    """By terminal, where it does not weigh 1."""
    balance_jobs: bool = False
    """Count, as SAR does, the routes inside jobs instead of one for each destination."""

    @property
    def isolation(self) -> I32:
        """int32[P]: a number for each group, and each partition without one."""
        numbers: dict[str, int] = {}
        names = [f"group {p.group}" if p.group else f"alone {i}" for i, p in enumerate(self.parts)]
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)

    def of_terminal(self, terminals: int) -> I32:
        """int32[T]: the partition that routes each: of the strictest policy, then the first; -1
        for ports in none."""
        found = np.full(terminals, -1, np.int32)
        for i in sorted(range(len(self.parts)), key=lambda i: (self.parts[i].policy, i))[::-1]:
            found[self.parts[i].terminals] = i
        return found

    def weights(self, terminals: int) -> NDArray[np.float64]:
        """float64[T], in the partition that routes each."""
        found = np.ones(terminals)
        for terminal, weight in self.weight.items():
            found[terminal] = weight
        home = self.of_terminal(terminals)
        for i, part in enumerate(self.parts):
            for terminal, weight in part.weight.items():
                if home[terminal] == i:
                    found[terminal] = weight
        return found


def make_partitions(parts: Iterable[Partition], fabric: Fabric, **policies: object) -> Partitions:
    """Raises `InputError` where a P_Key stands twice or `phy` partitions overlap."""
    kept = tuple(parts)
    by_key: dict[int, Partition] = {}
    owner: dict[int, Partition] = {}
    for part in kept:
        if part.key and (other := by_key.setdefault(part.key, part)) is not part:
            raise InputError(
                f"partitions {other.name} and {part.name} both have P_Key 0x{part.key:04x}",
                remedy="give each its own",
            )
        if part.policy is not Policy.PHY:
            continue
        for terminal in part.terminals.tolist():
            other = owner.setdefault(terminal, part)
            if other is not part and not (part.group and part.group == other.group):
                raise InputError(
                    f"{fabric.destination_name(terminal)} is in the phy partitions {other.name} "
                    f"and {part.name}, whose links could not be told apart",
                    remedy="put them into one group, or the port into one of them",
                )
    return Partitions(kept, **policies)  # type: ignore[arg-type]


def weights_from_counters(
    counters: NDArray[np.float64], least: float = 1.0, most: float = 100.0
) -> NDArray[np.float64]:
    """Equation 1: what ports have received, mapped linearly from [min, max] onto [least, most];
    where all are alike, `least`. float64[N] each."""
    low, high = float(counters.min(initial=np.inf)), float(counters.max(initial=-np.inf))
    if not high > low:
        return np.full(len(counters), least)
    mapped: NDArray[np.float64] = least + (counters - low) * (most - least) / (high - low)
    return mapped
