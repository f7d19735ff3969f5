"""Forwarding tables as walks follow them, kernels' arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32


class NextHops(NamedTuple):
    """Where a port leads."""

    channel_by_port: U32
    """uint32[S, 256]; what is no channel is a number above all of them."""
    target: U32
    """uint32[C]"""
    root: U32
    """uint32[D], the last switch before each destination."""


def next_hops_of(fabric: Fabric, *, live: bool = False) -> NextHops:
    """Along all channels, or along `live` ones only."""
    channel = fabric.channel_by_port
    if live:
        up = fabric.channel_up & fabric.switch_up[fabric.channel_target]
        channel = np.where((channel >= 0) & up[np.maximum(channel, 0)], channel, np.int32(-1))
    return NextHops(
        channel.view(np.uint32),
        fabric.channel_target.view(np.uint32),
        fabric.destination_switch.view(np.uint32),
    )


@njit(cache=True)
def differ(old: U8, new: U8) -> bool:  # pragma: no cover
    """Whether two trees, uint8[S] each, do: without a branch an entry."""
    found = np.uint8(0)
    for s in range(len(new)):
        found |= old[s] ^ new[s]
    return bool(found > 0)
