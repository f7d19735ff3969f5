"""InfiniBand partitions: which ports may communicate, and how far their traffic is isolated.

The policies are those of pFTree-Ext (pftree-2016, Table 1); groups, the cap on links of `phy`
partitions and weights per (node, partition) are the extensions that its Section 8.2 proposes.
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
"""The partition of management traffic, of which all ports are members: it isolates no port."""


class Policy(IntEnum):
    """How a partition is isolated from others; lower values are routed first."""

    PHY = 0
    """The partition shares no link."""
    VLANE = 1
    """The partition shares links only in a virtual lane of its own."""
    DEF = 2
    """The partition is isolated as far as possible."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Ports that may communicate with each other."""

    name: str
    key: int
    """P_Key without the membership bit, 1 … 0x7ffe; 0 for jobs that are treated as partitions."""
    terminals: I32
    """int32[N], ascending."""
    policy: Policy = Policy.DEF
    group: str = ""
    """Partitions of one group may share links and lanes."""
    weight: Mapping[int, float] = field(default_factory=dict)
    """Weights in this partition by terminal, where they differ from those in other partitions."""


@dataclass(frozen=True, eq=False)
class Partitions:
    """All partitions, and the policies that apply to all of them."""

    parts: tuple[Partition, ...]
    strict: bool = True
    """A policy that cannot be met is an error; otherwise it is a warning."""
    phy_links_most: float = 1.0
    """The share of a switch's upward links that `phy` partitions may take."""
    weight: Mapping[int, float] = field(default_factory=dict)
    """Weights by terminal, where they are not 1."""
    balance_jobs: bool = False
    """Count the routes inside jobs, as SAR does, instead of one for each destination."""

    @property
    def isolation(self) -> I32:
        """int32[P]: the number of each partition's group; partitions without a group have their
        own numbers."""
        numbers: dict[str, int] = {}
        names = [f"group {p.group}" if p.group else f"alone {i}" for i, p in enumerate(self.parts)]
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)

    def of_terminal(self, terminals: int) -> I32:
        """int32[T]: the partition that routes each terminal: the first of the strictest policy; -1
        for ports in no partition."""
        home = np.full(terminals, -1, np.int32)
        for i in sorted(range(len(self.parts)), key=lambda i: (self.parts[i].policy, i))[::-1]:
            home[self.parts[i].terminals] = i
        return home

    def weights(self, terminals: int) -> NDArray[np.float64]:
        """float64[T]: the weight of each terminal in the partition that routes it."""
        weights = np.ones(terminals)
        for terminal, weight in self.weight.items():
            weights[terminal] = weight
        home = self.of_terminal(terminals)
        for i, part in enumerate(self.parts):
            for terminal, weight in part.weight.items():
                if home[terminal] == i:
                    weights[terminal] = weight
        return weights


def make_partitions(parts: Iterable[Partition], fabric: Fabric, **policies: object) -> Partitions:
    """The partitions. Raises `InputError` where two have one P_Key or `phy` partitions overlap."""
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
                    f"and {part.name}, which would share its link",
                    remedy="put them into one group, or the port into one of them",
                )
    return Partitions(kept, **policies)  # type: ignore[arg-type]


def weights_from_counters(
    counters: NDArray[np.float64], least: float = 1.0, most: float = 100.0
) -> NDArray[np.float64]:
    """Equation 1: the traffic that ports received, mapped linearly from [min, max] onto
    [least, most]; `least` where all are equal. float64[N] each."""
    low, high = float(counters.min(initial=np.inf)), float(counters.max(initial=-np.inf))
    if not high > low:
        return np.full(len(counters), least)
    return least + (counters - low) * (most - least) / (high - low)
