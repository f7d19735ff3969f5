"""A routing key: routes of one job's flows with the least contention (routing-keys-2017, II-A).

A key serves one phase, or several phases at one LID offset. Tables know destinations only, so a key
installs whole rows: flows to one host that meet at a switch on the way up go on together. In a
phase that is a permutation no two flows share a host, and on an XGFT with as many parents as
children no two flows share a link. Where several phases share an offset, or hosts receive from
several others at once, `RoutingKey.contention` counts the remaining contention and gives its lower
bound for any routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft_view import XgftView
from sar_agent.routing.dmodk import modulo_labels
from sar_agent.routing.keys.digits import flow_digits
from sar_agent.routing.keys.key_tree import KeyTree
from sar_agent.routing.keys.search import search

Flows = tuple[I32, I32]
"""(sources int32[N], destinations int32[N]) of one phase, terminals."""
MOST_FLOWS = 1 << 20
SEARCHED = 1 << 22
"""Flows times channels up to which a key is searched for, too: half a second at most."""


class PhaseContention(NamedTuple):
    """The contention of one phase."""

    flows: int
    """The most flows of the phase on a channel between switches; 0 where no flow leaves its
    leaf."""
    bound: int
    """A lower bound of `flows` for any routes."""
    shared: int
    """Flows that must share a path because a table knows destinations only: those of the phase from
    one leaf switch to one host, but for the first."""


@dataclass(frozen=True, eq=False)
class RoutingKey:
    """The routes of N flows, phase after phase; flows within one leaf switch are left out."""

    tree: KeyTree
    source: I32
    """int32[N], terminals."""
    destination: I32
    """int32[N]"""
    phase: I32
    """int32[N], ascending."""
    phases: int
    """How many phases there are, including those without flows between switches."""
    digits: U8
    """uint8[N, h - 1]: on an XGFT, W_2 … W_h of each flow before any shift; else empty."""
    channels: I32
    """int32[N, hops]: the channels of each flow in the order of travel before any shift, then
    -1."""
    contention: tuple[PhaseContention, ...]
    """The contention of each phase."""


def make_key(tree: KeyTree, phases: Sequence[Flows], *, shifted: bool = False) -> RoutingKey:
    """One key for these phases, all at one LID offset. For a key a phase, call it once a phase. A
    key that is to be `shifted` fills few middle switches, so that the shift finds others for it.
    It is spread evenly over all where it is used as it is made, and where more jobs of its size
    than middle switches of a leaf fit the fabric: some of these meet, wherever they are shifted.

    Raises `InputError` for too many flows, and for flows of terminals that are down or no hosts.
    """
    fabric, leaf = tree.fabric, tree.fabric.terminal_switch
    if (count := sum(len(a) for a, _ in phases)) > MOST_FLOWS:
        raise InputError(
            f"{count} flows are too many for one routing key (at most {MOST_FLOWS})",
            remedy="give it one phase at a time; for all-to-all sar-plus is the better choice",
        )
    empty = np.empty(0, np.int32)
    source = np.concatenate([empty, *(a for a, _ in phases)]).astype(np.int32)
    destination = np.concatenate([empty, *(b for _, b in phases)]).astype(np.int32)
    phase = np.repeat(np.arange(len(phases), dtype=np.int32), [len(a) for a, _ in phases])
    for ends in (source, destination):
        if len(bad := ends[~fabric.is_host_port[ends]]):
            raise InputError(
                f"{fabric.destination_name(int(bad[0]))} is down or no host, so no flow can use it"
            )
    fewest = shifted and _one_of_few(tree, source, destination)
    between = leaf[source] != leaf[destination]
    source, destination, phase = source[between], destination[between], phase[between]
    best: tuple[U8, I32, tuple[PhaseContention, ...]] | None = None
    for candidate in _candidates(tree, source, destination, phase, fewest):
        digits, channels = candidate
        contention = _contention(tree, source, destination, phase, len(phases), channels)
        if best is None or _worth(contention) < _worth(best[2]):
            best = digits, channels, contention
        if all(each.flows <= each.bound for each in best[2]):
            break
    assert best is not None
    return RoutingKey(tree, source, destination, phase, len(phases), *best)


def _candidates(
    tree: KeyTree, source: I32, destination: I32, phase: I32, fewest: bool
) -> Iterator[tuple[U8, I32]]:
    """(digits, channels); the caller takes the next only if those before it are above the bound."""
    view, no_load = tree.view, np.zeros(tree.fabric.channels)
    if view is None:
        empty = np.empty((len(source), 0), np.uint8)
        yield empty, search(tree, source, destination, phase, no_load)
        return
    for few in (True, False) if fewest else (False,):
        digits = flow_digits(tree.fabric, view, source, destination, phase, merged=True, fewest=few)
        yield digits, digit_channels(tree, source, destination, digits)
    # With many phases at one offset, D-mod-k may be the better choice for all of them.
    usual = modulo_labels(view)[destination]
    yield usual, digit_channels(tree, source, destination, usual)
    # With hosts that have several sources, of different weight, a search may be.
    if len(source) * tree.fabric.channels <= SEARCHED:
        channels = search(tree, source, destination, phase, no_load)
        yield channel_digits(tree, source, destination, channels), channels


def _one_of_few(tree: KeyTree, source: I32, destination: I32) -> bool:
    """Whether the fabric has room for at most as many jobs with so many senders, or receivers, as a
    leaf switch has middle switches."""
    if tree.view is None:  # there are no colours
        return False
    ends = max(len(np.unique(each)) for each in (source, destination))
    return bool(ends * int(tree.view.w[1]) >= tree.fabric.is_host_port.sum())


def _worth(contention: tuple[PhaseContention, ...]) -> tuple[int, int]:
    """(most flows in a phase, sum over phases); less is better."""
    flows = [phase.flows for phase in contention]
    return max(flows, default=0), sum(flows)


def digit_channels(tree: KeyTree, source: I32, destination: I32, digits: U8) -> I32:
    """int32[N, 2 (h - 1)]: the channels of flows with these digits on an XGFT, in the
    order of travel, then -1."""
    view, fabric = tree.view, tree.fabric
    assert view is not None
    channels = np.full((len(source), 2 * (view.height - 1)), -1, np.int32)
    length = np.zeros(len(source), np.int64)
    start, goal = fabric.terminal_switch[source], fabric.terminal_switch[destination]
    at, top = start.astype(np.int64), np.ones_like(length)

    def go(flow: NDArray[np.intp], port: U8) -> None:
        channel = fabric.channel_by_port[at[flow], port]
        channels[flow, length[flow]] = channel
        length[flow] += 1
        at[flow] = fabric.channel_target[channel]

    for level in range(1, view.height):
        who = np.flatnonzero(view.inside[level, start] != view.inside[level, goal])
        go(who, view.up[at[who], digits[who, level - 1]])
        top[who] = level + 1
    for level in range(view.height, 1, -1):
        who = np.flatnonzero(top >= level)
        go(who, view.down[at[who], view.digit[destination[who], level - 1]])
    return channels


def channel_digits(tree: KeyTree, source: I32, destination: I32, channels: I32) -> U8:
    """uint8[N, h - 1]: the digits of flows that take these channels, 0 above where they turn."""
    fabric, view = tree.fabric, tree.view
    assert view is not None
    leaf, flow = fabric.terminal_switch, np.arange(len(source))
    digits = np.zeros((len(source), view.height - 1), np.uint8)
    for level in range(1, view.height):
        climbs = flow[view.inside[level, leaf[source]] != view.inside[level, leaf[destination]]]
        channel = channels[climbs, level - 1]
        parents = tree.up_channel[fabric.channel_source[channel]]
        digits[climbs, level - 1] = (parents == channel[:, None]).argmax(axis=1)
    return digits


def _contention(
    tree: KeyTree, source: I32, destination: I32, phase: I32, phases: int, channels: I32
) -> tuple[PhaseContention, ...]:
    # One phase at a time: an all-to-all has as many as hosts.
    first = np.searchsorted(phase, np.arange(phases + 1))
    contention = []
    for p in range(phases):
        part = slice(first[p], first[p + 1])
        used = channels[part]
        most = int(np.bincount(used[used >= 0], minlength=1).max())
        contention.append(PhaseContention(most, *_bound(tree, source[part], destination[part])))
    return tuple(contention)


def _bound(tree: KeyTree, source: I32, destination: I32) -> tuple[int, int]:
    """(`bound`, `shared`) of one phase: a bound from flows that leave or enter a leaf, or a subtree
    of an XGFT, over its channels; and the flows from one leaf to one host, which no table
    separates."""
    if not len(source):
        return 0, 0
    fabric, leaf, view = tree.fabric, tree.fabric.terminal_switch, tree.view
    pair = leaf[source].astype(np.int64) * fabric.terminals + destination
    together = np.unique(pair, return_counts=True)[1]
    bound = int(together.max())
    if view is not None:
        bound = max(bound, subtree_bound(view, leaf[source], leaf[destination]))
    else:
        ups = np.bincount(
            fabric.channel_source[fabric.channel_up], minlength=fabric.switches
        )  # all channels of a leaf switch lead up
        for end in (leaf[source], leaf[destination]):
            flows = np.bincount(end, minlength=fabric.switches)
            at = np.flatnonzero(flows)
            bound = max(bound, int((-(-flows[at] // np.maximum(1, ups[at]))).max()))
    return bound, int((together[together > 1] - 1).sum())


def subtree_bound(view: XgftView, source_leaf: I32, target_leaf: I32) -> int:
    """The most flows on a channel, at least, with any routes: flows that leave or enter a subtree
    over all of its channels."""
    bound, ways = 0, 1
    for level in range(1, view.height):
        ways *= view.w[level]
        a, b = view.inside[level, source_leaf], view.inside[level, target_leaf]
        for end in (a[a != b], b[a != b]):
            bound = max(bound, -(-int(np.bincount(end, minlength=1).max()) // ways))
    return bound
