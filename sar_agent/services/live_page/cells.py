"""The cells of the page's heat map: the live channels by level and direction, then by switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.link_levels import channel_levels


@dataclass(frozen=True, eq=False)
class HeatCells:
    """K cells, one for each live channel."""

    fabric: Fabric
    channel: NDArray[np.int64]
    """int64[K]"""
    cell: NDArray[np.int64]
    """int64[C]: the cell of each channel, -1 for those that are down."""
    names: tuple[str, ...]
    """The levels, in order."""
    first: NDArray[np.int64]
    """int64[levels + 1]: level i has the cells first[i]:first[i + 1]."""

    @classmethod
    def of(cls, fabric: Fabric) -> HeatCells:
        """The cells of a fabric."""
        found = channel_levels(fabric)
        sizes = [len(level.channels) for level in found]
        # Channels are sorted by source and port, and `channel_levels` keeps that order.
        channel = np.concatenate([np.empty(0, np.int64), *(level.channels for level in found)])
        cell = np.full(fabric.channels, -1, np.int64)
        cell[channel] = np.arange(len(channel))
        first = np.cumsum([0, *sizes], dtype=np.int64)
        return cls(fabric, channel, cell, tuple(level.name for level in found), first)

    @property
    def digest(self) -> str:
        """Names the fabric in answers."""
        return self.fabric.digest.hex()[:16]

    def json(self) -> dict[str, Any]:
        """The object of `api/fabric.json`."""
        fabric = self.fabric
        back = fabric.channel_reverse[self.channel]
        return {
            "fabric": self.digest,
            "hosts": fabric.terminals,
            "switches": list(fabric.switch_name),
            "levels": [
                {"name": name, "first": int(a), "cells": int(b - a)}
                for name, a, b in zip(self.names, self.first[:-1], self.first[1:], strict=True)
            ],
            "source": fabric.channel_source[self.channel].tolist(),
            "port": fabric.channel_port[self.channel].tolist(),
            "target": fabric.channel_target[self.channel].tolist(),
            "target_port": fabric.channel_port[back].tolist(),
        }


def thousandths(values: NDArray[np.float64]) -> list[int]:
    """Values as whole thousandths. A value above 0 is at least 1."""
    whole = np.rint(values * 1000).astype(np.int64)
    result: list[int] = np.where((values > 0) & (whole == 0), 1, whole).tolist()
    return result
