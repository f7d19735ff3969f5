"""Makes a job's key on a fabric, shifted away from the present keys; and counts flows on each link.

A shift is chosen by the load of other jobs on each channel. Each of their keys counts with its
busiest phase there, since the phase that a job is in is not known; jobs without a key count with
their load on LID offset 0, as if all did an all-to-all: a load of 1 is as much as one flow at full
speed.

**Weak spot:** how much a job without a key sends is a guess; counters may know better, but are not
asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.routing.graph.next_hops import channels_along
from sar_agent.routing.keys import KeyTree, choose_shift, key_tree, make_key, own_rows
from sar_agent.routing.lid_offsets import KeyRows
from sar_agent.routing.routes import Routes
from sar_agent.services.keys.flows import phases_of_wish
from sar_agent.services.keys.leases import Lease
from sar_agent.services.keys.tickets import TrafficWish


@dataclass(frozen=True, eq=False)
class LinkedKey:
    """The rows of a key, and its flows on the links of one fabric."""

    rows: KeyRows
    ports: frozenset[int]
    """All terminals of the job."""
    use: I32
    """int32[C]: flows over each channel, in the phase that has the most there."""

    @property
    def own(self) -> int:
        """Most flows of a phase over one link."""
        return int(self.use.max(initial=0))

    def total(self, load: I32) -> int:
        """Most flows over one of its links, with `load` int32[C] of other keys."""
        return int((self.use + load)[self.use > 0].max(initial=0))


def load_of(fabric: Fabric, others: Iterable[LinkedKey]) -> I32:
    """int32[C]: flows of all `others` over each channel."""
    load = np.zeros(fabric.channels, np.int32)
    for key in others:
        load += key.use
    return load


def from_routes(fabric: Fabric, lease: Lease, routes: Routes) -> LinkedKey:
    """The key as it is in the tables in force. Raises `SarError` where the lease's traffic does not
    fit the fabric."""
    table = routes.egress[lease.offset]
    phases = phases_of_wish(fabric, lease.hosts, lease.wish)
    targets = np.unique(np.concatenate([np.empty(0, np.int32), *(b for _, b in phases)]))
    use = np.zeros(fabric.channels, np.int32)
    for sources, destinations in phases:
        crossed, _ = channels_along(fabric, table, sources, destinations)
        flows = np.bincount(crossed[crossed >= 0], minlength=len(use))
        np.maximum(use, flows, out=use, casting="unsafe")
    rows = KeyRows(targets.astype(np.int32), table[targets].copy())
    return LinkedKey(rows, ports_of(fabric, lease.hosts), use)


def ports_of(fabric: Fabric, hosts: Iterable[str]) -> frozenset[int]:
    """All terminals of the hosts."""
    return frozenset(t for host in hosts for t in fabric.hosts.get(host, ()))


def make(fabric: Fabric, hosts: Sequence[str], wish: TrafficWish, load: I32 | F64) -> LinkedKey:
    """A key with the best shift for `load` [C], in flows. Raises `InputError` for traffic that is
    not valid, `Unserved` for a fabric that supports no keys."""
    phases = phases_of_wish(fabric, hosts, wish)
    key = make_key(_tree(fabric), phases, shifted=True)
    shift = choose_shift(key, load)
    return LinkedKey(own_rows(key, shift), ports_of(fabric, hosts), shift.own)


def warm() -> None:
    """Compile the kernels before a job waits for them: some ten seconds on a first start."""
    fabric = xgft_fabric("xgft:3;2,2,2;1,2,2")
    load = np.ones(fabric.channels, np.int32)
    with suppress(SarError):  # the first request reports it better
        make(fabric, tuple(fabric.hosts), TrafficWish(traffic="shift:3"), load)


@lru_cache(maxsize=2)
def _tree(fabric: Fabric) -> KeyTree:
    return key_tree(fabric)
