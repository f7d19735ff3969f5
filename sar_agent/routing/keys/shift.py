"""The fine-grained shift: which middle switches a key's colours become (routing-keys-2017, II-B).

On an XGFT it does not matter to a job which middle switch is which: any one-to-one map of colours
to parents keeps its flows apart, and below each parent any map of the next level's. The paper
hands the fullest colour to the emptiest switch, and so on. Its two criteria, the largest link load
and then the variance, add up over colours, since colours share no link; so the best of all maps is
an assignment, found exactly (`assign.py`): for each colour and parent the best map of what is
below them, then the best of these. Levels above the second keep the key's own colours. On other
trees colours mean nothing; there the search is run again, beside what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_agent.fabric.model import I32, U8
from sar_agent.routing.keys.assign import BAR, least_cost, least_most
from sar_agent.routing.keys.key import Key, digit_channels
from sar_agent.routing.keys.search import search

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shift:
    """Where a key's flows go in the end."""

    channels: I32
    """int32[N, hops]: as `Key.channels`, after the shift."""
    own: I32
    """int32[C]: the key's flows on each channel, in the phase that has most there."""
    most: float
    """Largest load on a channel of the key, own flows and others'; 0.0 for a key without any."""
    squares: float
    """Sum of the squares of these loads less those of others', what a variance grows by."""

    @property
    def worth(self) -> tuple[int, float, float]:
        """The less the better: own contention, the largest load, the variance."""
        return int(self.own.max(initial=0)), self.most, self.squares


def as_made(key: Key, load: NDArray[np.integer] | F64 | None = None) -> Shift:
    """No shift at all: ARK. `load` is only looked at for `Shift.most`."""
    return _shifted(key, key.channels, load)


def choose_shift(key: Key, load: NDArray[np.integer] | F64) -> Shift:
    """NRK: the shift of least largest link load, and of least variance among these.

    `load` [C] are the flows of others on each channel: the sum of `Shift.own` over the leased keys
    and, if wanted, what offset 0 carries.
    """
    if not len(key.source) or not load.any():
        return as_made(key, load)
    others = np.asarray(load, np.float64)
    if key.tree.view is None:
        found = search(key.tree, key.source, key.destination, key.phase, others)
        return min(as_made(key, load), _shifted(key, found, load), key=lambda shift: shift.worth)
    digits = _best_digits(key, others)
    return _shifted(key, digit_channels(key.tree, key.source, key.destination, digits), load)


def shift_in(key: Key, egress: U8) -> Shift | None:
    """The shift by which these tables, uint8[T + S, S], lead the key's flows; None where one does
    not arrive, or goes further than a tree is high."""
    fabric = key.tree.fabric
    channels = np.full_like(key.channels, -1)
    at, goal = fabric.terminal_switch[key.source], fabric.terminal_switch[key.destination]
    for hop in range(key.channels.shape[1]):
        away = np.flatnonzero(at != goal)
        channel = fabric.channel_by_port[at[away], egress[key.destination[away], at[away]]]
        if (channel < 0).any():
            return None
        channels[away, hop] = channel
        at[away] = fabric.channel_target[channel]
    return _shifted(key, channels, None) if (at == goal).all() else None


def _shifted(key: Key, channels: I32, load: NDArray[np.integer] | F64 | None) -> Shift:
    size = key.tree.fabric.channels
    own = np.zeros(size, np.int32)
    first = np.searchsorted(key.phase, np.arange(key.phases + 1))
    for p in range(key.phases):
        used = channels[first[p] : first[p + 1]]
        np.maximum(own, np.bincount(used[used >= 0], minlength=size), out=own, casting="unsafe")
    there = np.flatnonzero(own)
    mine = own[there].astype(np.float64)
    others = np.zeros(len(there)) if load is None else np.asarray(load, np.float64)[there]
    squares = float((mine * (mine + 2 * others)).sum())
    return Shift(channels, own, float((mine + others).max(initial=0)), squares)


def _best_digits(key: Key, load: F64) -> U8:
    """uint8[N, h - 1]"""
    tree, view, leaf = key.tree, key.tree.view, key.tree.fabric.terminal_switch
    assert view is not None
    w = [int(w) for w in view.w[1:3]] + [1] * (view.height == 2)
    colour = np.zeros((len(key.source), 2), np.int64)
    colour[:, : min(2, view.height - 1)] = key.digits[:, :2]
    back = tree.fabric.channel_reverse
    # Level 1: (channel up or down of leaf, colour) and the flows of the phase with most.
    uses_one, uses_two = [], []
    for end, up in ((key.source, True), (key.destination, False)):
        rows = tree.up_channel[leaf[end], : w[0]]
        uses_one.append(_uses(key, colour[:, :1], leaf[end], rows if up else back[rows]))
        if view.height > 2:
            climbs = view.inside[2, leaf[key.source]] != view.inside[2, leaf[key.destination]]
            uses_two.append((climbs, end, up))
    one_colour, one_channels, one_count = (np.concatenate(x) for x in zip(*uses_one, strict=True))
    two = []
    for climbs, end, up in uses_two:
        # By parent a of the leaf, its channels to each r: int32[n, w2, w3].
        above = tree.fabric.channel_target[tree.up_channel[leaf[end], : w[0]]]
        rows = tree.up_channel[above, : w[1]]
        rows = rows if up else back[rows]
        two.append(_uses(key, colour, view.inside[2, leaf[end]], rows, climbs))
    if two:
        two_colour, two_channels, two_count = (np.concatenate(x) for x in zip(*two, strict=True))
    else:
        two_colour = np.empty((0, 2), np.int64)
        two_channels, two_count = np.empty((0, w[0], w[1]), np.int32), np.empty(0, np.int64)
    plane, below = _best_maps(
        load, one_colour[:, 0], one_channels, one_count, two_colour, two_channels, two_count,
        w[0], w[1],
    )  # fmt: skip
    digits = key.digits.copy()
    digits[:, 0] = plane[colour[:, 0]]
    if view.height > 2:
        climbs = view.inside[2, leaf[key.source]] != view.inside[2, leaf[key.destination]]
        digits[climbs, 1] = below[colour[climbs, 0], colour[climbs, 1]]
    return digits


def _uses(
    key: Key, colour: I64, node: I32, channels: I32, which: NDArray[np.bool_] | None = None
) -> tuple[I64, I32, I64]:
    """(colour int64[n, ·], channels int32[n, …] by where it may go, flows int64[n] of the phase
    that has most), a row for each node and colour."""
    kept = np.arange(len(node)) if which is None else np.flatnonzero(which)
    pair = node[kept].astype(np.int64)
    for column in colour.T:
        pair = pair * 256 + column[kept]
    _, first, use = np.unique(pair, return_index=True, return_inverse=True)
    cell, count = np.unique(use.astype(np.int64) * key.phases + key.phase[kept], return_counts=True)
    most = np.zeros(len(first), np.int64)
    np.maximum.at(most, cell // key.phases, count)
    return colour[kept[first]], channels[kept[first]], most


@njit(cache=True)
def _best_maps(
    load: F64, one_colour: I64, one_channels: I32, one_count: I64,
    two_colour: I64, two_channels: I32, two_count: I64, planes: int, roots: int,
) -> tuple[I64, I64]:  # pragma: no cover  # fmt: skip
    """(int64[w2]: parent of each colour; int64[w2, w3]: of each colour and next one)."""
    most_one, sum_one = np.zeros((planes, planes)), np.zeros((planes, planes))
    for i in range(len(one_count)):
        c, k = one_colour[i], float(one_count[i])
        for a in range(planes):
            there = load[one_channels[i, a]]
            most_one[c, a] = max(most_one[c, a], there + k)
            sum_one[c, a] += k * (2 * there + k)
    many = planes if len(two_count) else 0
    most_two = np.zeros((many, many, roots, roots))
    sum_two = np.zeros((many, many, roots, roots))
    climbs = np.zeros(planes, np.bool_)
    for i in range(len(two_count)):
        c, d, k = two_colour[i, 0], two_colour[i, 1], float(two_count[i])
        climbs[c] = True
        for a in range(planes):
            for r in range(roots):
                there = load[two_channels[i, a, r]]
                most_two[c, a, d, r] = max(most_two[c, a, d, r], there + k)
                sum_two[c, a, d, r] += k * (2 * there + k)
    for c in range(planes):
        if climbs[c]:
            for a in range(planes):
                most_one[c, a] = least_most(most_two[c, a], most_one[c, a])
    most = least_most(most_one, 0.0)
    below = np.zeros((planes, planes, roots), np.int64)
    for c in range(planes):
        for a in range(planes):
            if most_one[c, a] > most:
                sum_one[c, a] = BAR
            elif climbs[c]:
                for d in range(roots):
                    for r in range(roots):
                        if most_two[c, a, d, r] > most:
                            sum_two[c, a, d, r] = BAR
                sum_one[c, a] += least_cost(sum_two[c, a], below[c, a])
            else:
                for d in range(roots):
                    below[c, a, d] = d
    plane = np.empty(planes, np.int64)
    least_cost(sum_one, plane)
    chosen = np.empty((planes, roots), np.int64)
    for c in range(planes):
        for d in range(roots):
            chosen[c, d] = below[c, plane[c], d]
    return plane, chosen
