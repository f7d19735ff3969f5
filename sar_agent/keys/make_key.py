"""A key for a job on a fabric, held against the keys that are there; and what each link carries.

The load that a shift is chosen by is what other jobs' keys lead over each channel, of each key its
busiest phase: which phase a job is in nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs.patterns import Phase
from sar_agent.keys.flows import phases_of_wish
from sar_agent.keys.routes import KeyTree, choose_shift, key_tree, make_key, own_rows
from sar_agent.keys.tickets import TrafficWish
from sar_agent.routing.lid_offsets import KeyRows
from sar_agent.routing.routes import Routes


@dataclass(frozen=True, eq=False)
class LinkedKey:
    """The rows of a key, and what it does to the links of one fabric."""

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
        """The same, with what others have on it: `load` int32[C]."""
        return int((self.use + load)[self.use > 0].max(initial=0))


def load_of(fabric: Fabric, others: Iterable[LinkedKey]) -> I32:
    """int32[C]: what they lead over each channel."""
    load = np.zeros(fabric.channels, np.int32)
    for one in others:
        load += one.use
    return load


def from_routes(
    fabric: Fabric, hosts: Sequence[str], phases: list[Phase], offset: int, routes: Routes
) -> LinkedKey:
    """The key as tables in force have it, after a restart."""
    targets = np.unique(np.concatenate([np.empty(0, np.int32), *(b for _, b in phases)]))
    rows = KeyRows(targets.astype(np.int32), routes.egress[offset, targets].copy())
    return made_of(fabric, hosts, phases, rows)


def made_of(fabric: Fabric, hosts: Sequence[str], phases: list[Phase], rows: KeyRows) -> LinkedKey:
    """With the links that `rows` lead the flows over."""
    use = np.zeros(fabric.channels, np.int32)
    for sources, targets in phases:
        use = np.maximum(use, flows_over(fabric, rows, sources, targets))
    return LinkedKey(rows, ports_of(fabric, hosts), use)


def ports_of(fabric: Fabric, hosts: Iterable[str]) -> frozenset[int]:
    """Terminals."""
    return frozenset(t for host in hosts for t in fabric.hosts.get(host, ()))


def flows_over(fabric: Fabric, rows: KeyRows, sources: I32, targets: I32) -> I32:
    """int32[C]: how many of the flows cross each channel. A flow that would not arrive is counted
    as far as it gets."""
    found = np.zeros(fabric.channels, np.int32)
    egress = np.full((fabric.terminals, fabric.switches), 255, np.uint8)
    table: U8 = egress
    table[rows.destinations] = rows.egress
    at = fabric.terminal_switch[sources]
    for _ in range(fabric.switches):
        away = at != fabric.terminal_switch[targets]
        if not away.any():
            break
        sources, targets, at = sources[away], targets[away], at[away]
        channel = fabric.channel_by_port[at, table[targets, at]]
        there = channel >= 0
        found += np.bincount(channel[there], minlength=fabric.channels).astype(np.int32)
        sources, targets, at = sources[there], targets[there], fabric.channel_target[channel[there]]
    return found


def make(fabric: Fabric, hosts: Sequence[str], wish: TrafficWish, load: I32) -> LinkedKey:
    """With the best shift for `load`, int32[C]. Raises `InputError` for a wish that makes no sense,
    `Unserved` for a fabric without keys."""
    phases = phases_of_wish(fabric, hosts, wish)
    key = make_key(_tree(fabric), phases)
    shift = choose_shift(key, load)
    return LinkedKey(own_rows(key, shift), ports_of(fabric, hosts), shift.own)


def warm() -> None:
    """Have the kernels compiled before a job waits for them: some ten seconds on a first start."""
    fabric = xgft_fabric("xgft:3;2,2,2;1,2,2")
    load = np.ones(fabric.channels, np.int32)
    with suppress(SarError):  # the first request says it better
        make(fabric, tuple(fabric.hosts), TrafficWish(traffic="shift:3"), load)


@lru_cache(maxsize=2)
def _tree(fabric: Fabric) -> KeyTree:
    return key_tree(fabric)
