"""Every reading of one fabric on the same indices, however its source lists the nodes.

ibnetdiscover lists switches as their answers arrive, and OpenSM lists them in another order after a
failure. A digest does not tell orders apart, so tables that are known by the digest of their fabric
would be read on indices of other switches. So a node keeps its rank for as long as the process
lives: nodes that were not there before follow those that were.

**Weak spot:** after many changes the order is that of their history; an engine that goes by the
order of hosts may then choose other routes than after a restart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import Fabric

Order = NDArray[np.intp]
"""For each new index the old one."""


class StableOrder:
    """The order of all switches and terminals that there ever were, by their GUIDs."""

    def __init__(self) -> None:
        self._switches, self._terminals = dict[int, int](), dict[int, int]()
        self._last: tuple[Fabric, Fabric] | None = None

    def of(self, fabric: Fabric) -> Fabric:
        """The fabric on these indices; the object itself where it has them, and the same object
        again for the same reading."""
        if self._last is None or self._last[0] is not fabric:
            switches = _order(self._switches, fabric.switch_guid.tolist())
            terminals = _order(self._terminals, fabric.terminal_guid.tolist())
            self._last = fabric, reindexed(fabric, switches, terminals)
        return self._last[1]


def _order(ranks: dict[int, int], guids: list[int]) -> Order:
    for guid in guids:
        ranks.setdefault(guid, len(ranks))
    return np.argsort(np.array([ranks[guid] for guid in guids], np.int64), kind="stable")


def reindexed(fabric: Fabric, switches: Order, terminals: Order) -> Fabric:
    """The fabric with its switches and terminals in another order; itself where it is in this one.

    `switches` and `terminals` are permutations, int[S] and int[T]: the old index of each new one.
    """
    if all(np.array_equal(order, np.arange(len(order))) for order in (switches, terminals)):
        return fabric
    new = np.argsort(switches).astype(np.int32)  # of each old index
    source = new[fabric.channel_source]
    channels = np.lexsort((fabric.channel_port, source))
    again = np.argsort(channels).astype(np.int32)
    source = source[channels]
    return replace(
        fabric,
        **_permuted(fabric, "switch", ("guid", "lid", "ports", "position", "name"), switches),
        **_permuted(
            fabric,
            "terminal",
            ("guid", "node_guid", "port_number", "description", "host", "rail", "kind", "lid",
             "switch_port", "up", "rate", "position", "lanes"),
            terminals,
        ),
        terminal_switch=new[fabric.terminal_switch][terminals],
        **_permuted(fabric, "channel", ("port", "up", "rate", "lanes"), channels),
        channel_offset=np.searchsorted(source, np.arange(fabric.switches + 1)).astype(np.int32),
        channel_source=source,
        channel_target=new[fabric.channel_target][channels],
        channel_reverse=again[fabric.channel_reverse][channels],
        switches_down=tuple(sorted(new[list(fabric.switches_down)].tolist())),
    )  # fmt: skip


def _permuted(fabric: Fabric, kind: str, names: tuple[str, ...], order: Order) -> dict[str, Any]:
    """Fields `kind`_`name` in this order; those that the source does not tell stay empty."""
    fields: dict[str, Any] = {}
    for name in names:
        value = getattr(fabric, f"{kind}_{name}")
        if isinstance(value, tuple):
            fields[f"{kind}_{name}"] = tuple(value[i] for i in order)
        else:
            fields[f"{kind}_{name}"] = value[order] if len(value) else value
    return fields
