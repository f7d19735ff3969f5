"""Placement of jobs on a two-level fat tree such that no two jobs share a link.

After S. A. Smith and D. K. Lowenthal, "Jigsaw: a high-utilization, interference-free job scheduler
for fat-tree clusters", HPDC 2021, for two levels. A job is on one leaf switch, or on x leaves with
n nodes each and perhaps one more with r < n nodes. It then owns n cables of each leaf, all to the
same n spines, and r cables of the last leaf, to r of these. So it has a tree of its own with as
many cables up as nodes, and `isolated_routes` uses it without contention. Denser shapes are tried
first, on the fullest leaves that fit; the search is depth first and gives up after `MOST_STEPS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine

MOST_STEPS = 2000


@dataclass(frozen=True)
class LeafShare:
    """A job's part of one leaf: some hosts, and as many spines."""

    leaf: int
    nodes: tuple[int, ...]
    spines: tuple[int, ...]
    """Numbers of spines; empty for a job on one leaf."""


@dataclass
class LeafSpace:
    """Free nodes and cables of each leaf of a tree of `leaves` x `nodes` hosts."""

    leaves: int
    nodes: int
    spines: int
    free: list[list[int]] = field(default_factory=list)
    """The free hosts of each leaf, ascending."""
    cables: list[int] = field(default_factory=list)
    """A bit for each spine to which the leaf's cable is free."""

    def __post_init__(self) -> None:
        if not self.free:
            every = range(self.leaves * self.nodes)
            self.free = [
                list(every[i * self.nodes : (i + 1) * self.nodes]) for i in range(self.leaves)
            ]
            self.cables = [(1 << self.spines) - 1] * self.leaves

    def copy(self) -> LeafSpace:
        """The same state, to try something."""
        free = [list(hosts) for hosts in self.free]
        return LeafSpace(self.leaves, self.nodes, self.spines, free, list(self.cables))

    def place(self, size: int) -> tuple[LeafShare, ...] | None:
        """Takes nodes and cables for a job; None, and nothing taken, where no place was found."""
        shares = self._find(size)
        for share in shares or ():
            self.free[share.leaf] = [h for h in self.free[share.leaf] if h not in share.nodes]
            self.cables[share.leaf] &= ~_bits(share.spines)
        return shares

    def release(self, shares: tuple[LeafShare, ...]) -> None:
        """Gives back what `place` took."""
        for share in shares:
            self.free[share.leaf] = sorted([*self.free[share.leaf], *share.nodes])
            self.cables[share.leaf] |= _bits(share.spines)

    def _find(self, size: int) -> tuple[LeafShare, ...] | None:
        room = [len(hosts) for hosts in self.free]
        if size > sum(room):
            return None
        alone = [leaf for leaf in range(self.leaves) if room[leaf] >= size]
        if alone:
            leaf = min(alone, key=lambda i: (room[i], i))
            return (LeafShare(leaf, tuple(self.free[leaf][:size]), ()),)
        steps = [MOST_STEPS]
        for each in range(min(self.nodes, self.spines, size), 0, -1):
            count, rest = divmod(size, each)
            fit = [i for i in range(self.leaves) if room[i] >= each]
            fit = [i for i in fit if self.cables[i].bit_count() >= each]
            if count + bool(rest) > self.leaves or len(fit) < count or (count == 1 and not rest):
                continue
            fit.sort(key=lambda i: (room[i], i))
            found = self._search(fit, count, each, rest, (1 << self.spines) - 1, [], steps)
            if found or steps[0] <= 0:
                return found
        return None

    def _search(
        self,
        fit: list[int],
        count: int,
        each: int,
        rest: int,
        common: int,
        chosen: list[int],
        steps: list[int],
    ) -> tuple[LeafShare, ...] | None:
        """Adds leaves to `chosen` whose cables go to `each` common spines."""
        steps[0] -= 1
        if not count:
            return self._with_last(chosen, each, rest, common)
        for place, leaf in enumerate(fit):
            if len(fit) - place < count or steps[0] <= 0:
                return None
            both = common & self.cables[leaf]
            if both.bit_count() >= each:
                after = fit[place + 1 :]
                found = self._search(after, count - 1, each, rest, both, [*chosen, leaf], steps)
                if found:
                    return found
        return None

    def _with_last(
        self, chosen: list[int], each: int, rest: int, common: int
    ) -> tuple[LeafShare, ...] | None:
        spines = _numbers(common)
        last: LeafShare | None = None
        if rest:
            others = [
                i for i in range(self.leaves) if i not in chosen and len(self.free[i]) >= rest
            ]
            others = [i for i in others if (self.cables[i] & common).bit_count() >= rest]
            if not others:
                return None
            leaf = min(others, key=lambda i: (len(self.free[i]), i))
            first = _numbers(common & self.cables[leaf])[:rest]
            spines = [*first, *(s for s in spines if s not in first)]
            last = LeafShare(leaf, tuple(self.free[leaf][:rest]), tuple(first))
        shares = [LeafShare(i, tuple(self.free[i][:each]), tuple(spines[:each])) for i in chosen]
        return (*shares, last) if last else tuple(shares)


def space_of(fabric: Fabric) -> LeafSpace:
    """An empty machine. Raises `InputError` where the fabric is no two-level XGFT with hosts in the
    order of leaves, and `Unserved` where it is no XGFT."""
    view = recognise_xgft(fabric)
    hosts, leaves = view.m[0], len(fabric.leaves)
    if view.height != 2 or (fabric.terminal_switch != np.repeat(fabric.leaves, hosts)).any():
        raise InputError(f"{fabric.name} is no two-level tree with hosts in the order of leaves")
    return LeafSpace(leaves, hosts, view.ncas)


def isolated_routes(fabric: Fabric, jobs: list[tuple[LeafShare, ...]]) -> Routes:
    """Routes of `ftree`, but inside each job over its own cables. Between leaves with n nodes, host
    j of a leaf is reached over spine j of the job; from the last leaf, its r spines take turns. For
    an all-to-all no cable then carries more than one host can send."""
    egress = load_engine("ftree").route(fabric, JobMix(()), Options()).egress.copy()
    level = fabric.terminals_at > 0
    spines = np.flatnonzero(~level)
    port = np.zeros((fabric.switches, len(spines)), np.uint8)
    number = np.zeros(fabric.switches, np.int64)
    number[spines] = np.arange(len(spines))
    for c in np.flatnonzero(level[fabric.channel_source]):
        port[fabric.channel_source[c], number[fabric.channel_target[c]]] = fabric.channel_port[c]
    for shares in jobs:
        most = max(len(share.spines) for share in shares)
        for share in shares:
            here, turn = int(fabric.leaves[share.leaf]), 0
            for other in shares:
                if other is share:
                    continue
                for j, host in enumerate(other.nodes):
                    if len(share.spines) < most:
                        spine = share.spines[turn % len(share.spines)]
                        turn += 1
                    else:
                        spine = share.spines[j]
                    egress[0, host, here] = port[here, spine]
    return Routes("isolated", fabric.digest, egress)


def hosts_of(shares: tuple[LeafShare, ...]) -> I32:
    """int32[N], ascending."""
    return np.sort(np.array([h for share in shares for h in share.nodes], np.int32))


def _bits(numbers: tuple[int, ...]) -> int:
    return sum(1 << number for number in numbers)


def _numbers(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]
