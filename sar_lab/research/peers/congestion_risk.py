"""The congestion risk of tables: how many flows of a pattern meet on one channel.

For a permutation, the most flows on any channel. For an all-to-all, the flows of a channel come
from some sources and go to some destinations, and ports limit both: the risk is the smaller of the
two counts, at most over the channels (J. Gliksberg et al., 2020, and Zahavi's D-mod-k before).
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64, U8, U32
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel

Hosts = U32
"""uint32[N]: terminals in the order of ranks."""


class TableWalk:
    """The tables of one offset, ready to be walked by many patterns."""

    def __init__(self, fabric: Fabric, routes: Routes) -> None:
        self._arrays = (
            routes.egress[0],
            np.where(
                fabric.channel_by_port < 0, np.int64(fabric.channels), fabric.channel_by_port
            ).astype(np.uint32),
            fabric.channel_target.astype(np.uint32),
            fabric.terminal_switch.astype(np.uint32),
        )
        self._channels = fabric.channels

    def permutations(self, source: Hosts, destinations: U32) -> I64:
        """int64[P]: the most flows on a channel where source[i] sends to destinations[p, i]. Raises
        ValueError where a route does not arrive."""
        return _checked(_most(*self._arrays, self._channels, source, destinations))

    def all_to_all(self, hosts: Hosts) -> int:
        """The most, over the channels, of the smaller of the numbers of sources and destinations
        of its flows."""
        return int(_checked(_both(*self._arrays, self._channels, hosts)).max(initial=0))


def shifts(hosts: Hosts) -> U32:
    """uint32[N - 1, N]: rank i sends to rank i + k mod N, k = 1 … N - 1."""
    return np.stack([np.roll(hosts, -k) for k in range(1, len(hosts))])


def random_permutations(hosts: Hosts, count: int, seed: int) -> U32:
    """uint32[count, N]: drawn alike from all permutations."""
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(hosts) for _ in range(count)])


def _checked(found: I64) -> I64:
    if (found < 0).any():
        raise ValueError("a route does not arrive")
    return found


@kernel
def _most(
    egress: U8, by_port: U32, target: U32, leaf: U32, channels: int, source: U32, to: U32
) -> I64:  # pragma: no cover
    switches = np.uint32(egress.shape[1])
    most = np.zeros(len(to), np.int64)
    flows = np.zeros(channels, np.int64)
    for p in range(np.uint32(len(to))):
        flows[:] = 0
        for i in range(np.uint32(len(source))):
            d = to[p, i]
            v, hops = leaf[source[i]], np.uint32(0)
            while v != leaf[d]:
                c = by_port[v, egress[d, v]]
                if c >= channels or hops > switches:
                    most[p] = -1
                    return most
                flows[c] += 1
                v = target[c]
                hops += np.uint32(1)
        most[p] = flows.max()
    return most


@kernel
def _both(
    egress: U8, by_port: U32, target: U32, leaf: U32, channels: int, hosts: U32
) -> I64:  # pragma: no cover
    """int64[C]"""
    switches = np.uint32(egress.shape[1])
    count = np.zeros((2, channels), np.int64)
    seen = np.zeros(channels, np.int64)
    mark = np.int64(0)
    for side in range(np.uint32(2)):
        for one in hosts:
            mark += 1
            for other in hosts:
                s, d = (one, other) if side == 0 else (other, one)
                v, hops = leaf[s], np.uint32(0)
                while v != leaf[d]:
                    c = by_port[v, egress[d, v]]
                    if c >= channels or hops > switches:
                        return np.full(1, -1, np.int64)
                    if seen[c] != mark:
                        seen[c] = mark
                        count[side, c] += 1
                    v = target[c]
                    hops += np.uint32(1)
    smaller: I64 = np.minimum(count[0], count[1])
    return smaller
