"""The fine-grained shift: the middle switch of each of a key's colours (routing-keys-2017, II-B).

On an XGFT a job does not care which middle switch a colour becomes: any one-to-one map of colours
to parents keeps its flows apart, and so does, below each parent, any map of the next level's
colours. The paper assigns the fullest colour to the emptiest switch, and so on. Its two criteria,
the largest link load and then the variance, add up over colours, because colours share no link. So
the best map is an assignment problem, solved exactly (`assignment_problem.py`): for each colour and
parent the best map of the colours below, then the best map of these. Levels above the second keep
the key's own colours. On other trees there are no colours; there the search runs again, with the
load of other keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import F64, I32, I64, U8
from sar_agent.routing.graph.next_hops import channels_along
from sar_agent.routing.keys.assignment_problem import BAR, least_cost, least_most
from sar_agent.routing.keys.key import RoutingKey, digit_channels
from sar_agent.routing.keys.key_tree import KeyTree
from sar_agent.routing.keys.search import search
from sar_agent.util.kernels import kernel


@dataclass(frozen=True, eq=False)
class Shift:
    """The final routes of a key's flows."""

    channels: I32
    """int32[N, hops]: the channels of each flow after the shift, as `RoutingKey.channels`."""
    own: I32
    """int32[C]: the key's flows on each channel, in the phase with most flows there."""
    most: float
    """The largest load, own flows and others', on a channel of the key; 0.0 for a key without
    flows."""
    squares: float
    """By how much the key raises the sum of squared loads, and so their variance."""

    @property
    def worth(self) -> tuple[int, float, float]:
        """(own contention, largest load, variance); less is better."""
        return int(self.own.max(initial=0)), self.most, self.squares


def unshifted(key: RoutingKey, load: NDArray[np.integer] | F64 | None = None) -> Shift:
    """The key without a shift, as ARK uses it. `load` only affects `Shift.most` and `squares`."""
    return _shifted(key, key.channels, load)


def choose_shift(key: RoutingKey, load: NDArray[np.integer] | F64) -> Shift:
    """NRK's shift: the least largest link load and, among such shifts, the least variance.

    `load` [C] are the flows of others on each channel: the sum of `Shift.own` over the leased keys
    and, if desired, the load of offset 0.
    """
    if not len(key.source) or not load.any():
        return unshifted(key, load)
    others = np.asarray(load, np.float64)
    if key.tree.view is None:
        channels = search(key.tree, key.source, key.destination, key.phase, others)
        shifts = unshifted(key, load), _shifted(key, channels, load)
        return min(shifts, key=lambda shift: shift.worth)
    digits = _best_digits(key, others)
    return _shifted(key, digit_channels(key.tree, key.source, key.destination, digits), load)


def shift_in(key: RoutingKey, egress: U8) -> Shift | None:
    """The shift that these tables, uint8[T + S, S], hold for the key's flows; None where a flow
    does not arrive, or takes more hops than up and down the tree."""
    channels, arrives = channels_along(key.tree.fabric, egress, key.source, key.destination)
    if not arrives.all() or channels.shape[1] > key.channels.shape[1]:
        return None
    return _shifted(key, channels, None)


def _shifted(key: RoutingKey, channels: I32, load: NDArray[np.integer] | F64 | None) -> Shift:
    size = key.tree.fabric.channels
    own = np.zeros(size, np.int32)
    first = np.searchsorted(key.phase, np.arange(key.phases + 1))
    for p in range(key.phases):
        taken = channels[first[p] : first[p + 1]]
        np.maximum(own, np.bincount(taken[taken >= 0], minlength=size), out=own, casting="unsafe")
    used = np.flatnonzero(own)
    flows = own[used].astype(np.float64)
    others = np.zeros(len(used)) if load is None else np.asarray(load, np.float64)[used]
    squares = float((flows * (flows + 2 * others)).sum())
    return Shift(channels, own, float((flows + others).max(initial=0)), squares)


def _best_digits(key: RoutingKey, load: F64) -> U8:
    """uint8[N, h - 1]: the digits of each flow under the best map."""
    tree, view, leaf = key.tree, key.tree.view, key.tree.fabric.terminal_switch
    assert view is not None
    w = [int(w) for w in view.w[1:3]] + [1] * (view.height == 2)
    colour = np.zeros((len(key.source), 2), np.int64)
    colour[:, : min(2, view.height - 1)] = key.digits[:, :2]
    everyone = np.arange(len(colour))
    first = _both_ends(tree, tree.up_channel[:, : w[0]])
    ends = leaf[key.source], leaf[key.destination]
    upper = _uses(key, colour[:, :1], ends, everyone)
    if view.height > 2:
        ends = view.inside[2, ends[0]], view.inside[2, ends[1]]
        climbs = np.flatnonzero(ends[0] != ends[1])
        second = _both_ends(tree, tree.second_channel)
    else:
        climbs, second = everyone[:0], np.zeros((2, 1, 1, 1), np.int32)
    lower = _uses(key, colour, ends, climbs)
    plane, below = _best_maps(load, first, *upper, second, *lower, w[0], w[1])
    digits = key.digits.copy()
    digits[:, 0] = plane[colour[:, 0]]
    if view.height > 2:
        digits[climbs, 1] = below[colour[climbs, 0], colour[climbs, 1]]
    return digits


def _both_ends(tree: KeyTree, up: I32) -> I32:
    """int32[2, …]: the channels up, and those back down."""
    return np.stack([up, np.where(up < 0, -1, tree.fabric.channel_reverse[up])]).astype(np.int32)


def _uses(
    key: RoutingKey, colour: I64, ends: tuple[I32, I32], which: NDArray[np.intp]
) -> tuple[I64, I64, I64]:
    """(colour int64[n, ·]; end 0 or 1 and the node there, int64[n, 2]; flows int64[n] of the phase
    with most): one row for each colour that goes up from a node, or down to it."""
    pairs = []
    for end, node in enumerate(ends):
        pair = node[which].astype(np.int64) * 2 + end
        for column in colour.T:
            pair = pair * 256 + column[which]
        pairs.append(pair)
    _, first, use = np.unique(np.concatenate(pairs), return_index=True, return_inverse=True)
    phase = np.tile(key.phase[which], 2)
    cell, count = np.unique(use.astype(np.int64) * key.phases + phase, return_counts=True)
    most = np.zeros(len(first), np.int64)
    np.maximum.at(most, cell // key.phases, count)
    side, place = np.divmod(first, max(1, len(which)))
    flow = which[place]
    node = np.where(side == 0, ends[0][flow], ends[1][flow])
    return colour[flow], np.stack([side, node], axis=1).astype(np.int64), most


@kernel
def _best_maps(
    load: F64, first: I32, one_colour: I64, one_node: I64, one_count: I64,
    second: I32, two_colour: I64, two_node: I64, two_count: I64, planes: int, roots: int,
) -> tuple[I64, I64]:  # pragma: no cover  # fmt: skip
    """(int64[w2]: the parent of each colour; int64[w2, w3]: that of each colour and next
    colour)."""
    most_one, sum_one = np.zeros((planes, planes)), np.zeros((planes, planes))
    for i in range(len(one_count)):
        c, k = one_colour[i, 0], float(one_count[i])
        for a in range(planes):
            others = load[first[one_node[i, 0], one_node[i, 1], a]]
            most_one[c, a] = max(most_one[c, a], others + k)
            sum_one[c, a] += k * (2 * others + k)
    size = planes if len(two_count) else 0
    most_two = np.zeros((size, size, roots, roots))
    sum_two = np.zeros((size, size, roots, roots))
    climbs = np.zeros(planes, np.bool_)
    for i in range(len(two_count)):
        c, d, k = two_colour[i, 0], two_colour[i, 1], float(two_count[i])
        climbs[c] = True
        for a in range(planes):
            for r in range(roots):
                others = load[second[two_node[i, 0], two_node[i, 1], a, r]]
                most_two[c, a, d, r] = max(most_two[c, a, d, r], others + k)
                sum_two[c, a, d, r] += k * (2 * others + k)
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
