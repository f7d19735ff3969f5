"""ARK and NRK as they are printed (routing-keys-2017, II and III); ours differ.

Ours fill few middle switches, too, but never more than a leaf has flows; ours of ARK, which are not
shifted, are spread evenly over all (pages/routing-keys-measured.md).

*ARK*: the flows are edges between leaf switches; a maximum matching of them (Hopcroft-Karp) takes
the first middle switch, one of those left over the next, and so on; on three levels the same again
inside each part above the leaves. The print says that this is free of contention "if such a
contention-free solution exists". It is not: `test_keys_printed.py` has four edges of degree two for
which the first matching leaves a third. Where matchings outnumber the middle switches, which the
print leaves open, they begin again at the first. It does not print that the first matching takes
the first switch either, only that each takes "a different" one: so all keys may begin at the first
switch, or each at one that is drawn (`-drawn`), from its flows alone.

*NRK*: the middle switch with most of the key's flows becomes the "least-loaded middle switch in the
current network state", then the second, and so on. That can be the switch with the fewest flows on
all its links (`FEWEST_FLOWS`), or the one whose links are least loaded where these flows would use
them (`OWN_LINKS`). Each takes a switch of its own, which the contention-free key needs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from zlib import crc32

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import Unserved
from sar_agent.fabric.model import F64, I32, U8
from sar_agent.routing.keys import KeyTree, RoutingKey, Shift, make_key, unshifted
from sar_agent.routing.keys.key import Flows, digit_channels

FEWEST_FLOWS, OWN_LINKS = "fewest flows", "own links"
READINGS = (FEWEST_FLOWS, OWN_LINKS)


def matchings(tails: NDArray[np.integer], heads: NDArray[np.integer]) -> list[list[int]]:
    """The edges of each maximum matching, until none is left."""
    # Numbers as nodes: the order of sets of texts differs from process to process.
    above = 1 + int(tails.max(initial=0))
    left: dict[tuple[int, int], list[int]] = {}
    for edge, pair in enumerate(zip(tails.tolist(), heads.tolist(), strict=True)):
        left.setdefault(pair, []).append(edge)
    found: list[list[int]] = []
    while left:
        graph = nx.Graph([(a, above + b) for a, b in left])
        tops = sorted({a for a, _ in left})
        mates = nx.bipartite.hopcroft_karp_matching(graph, tops)
        found.append([])
        for top in tops:
            if top in mates:
                pair = top, mates[top] - above
                found[-1].append(left[pair].pop())
                if not left[pair]:
                    del left[pair]
    return found


@cache
def _digits(tree: KeyTree, source: bytes, destination: bytes, drawn: bool) -> U8:
    random = np.random.default_rng(crc32(source + destination))
    view, leaf = tree.view, tree.fabric.terminal_switch
    assert view is not None
    ends = [leaf[np.frombuffer(each, np.int32)] for each in (source, destination)]
    digits = np.zeros((len(ends[0]), view.height - 1), np.uint8)
    plane = np.zeros(len(digits), np.int64)
    for level in range(1, view.height):
        a, b = (view.inside[level, end] for end in ends)
        for part in np.unique(plane[a != b]):
            climbs = np.flatnonzero((plane == part) & (a != b))
            first = int(random.integers(view.w[level])) if drawn else 0
            for number, edges in enumerate(matchings(a[climbs], b[climbs]), start=first):
                digits[climbs[edges], level - 1] = number % view.w[level]
        plane = plane * view.w[level] + digits[:, level - 1]
    return digits


def printed_key(tree: KeyTree, flows: Flows, drawn: bool = False) -> RoutingKey:
    """ARK's key for one phase; its matchings begin at the first middle switch, or at one that is
    `drawn` for each part of the tree. Raises `Unserved` where the tree is no XGFT."""
    if tree.view is None:
        raise Unserved(f"keys as printed need an XGFT: {tree.why_not}")
    ours = make_key(tree, [flows])
    digits = _digits(tree, ours.source.tobytes(), ours.destination.tobytes(), drawn)
    return with_digits(ours, digits)


def with_digits(key: RoutingKey, digits: U8) -> RoutingKey:
    """The key with other middle switches; its contention is not counted again."""
    channels = digit_channels(key.tree, key.source, key.destination, digits)
    return replace(key, digits=digits, channels=channels)


def printed_shift(key: RoutingKey, load: NDArray[np.integer] | F64, reading: str) -> Shift:
    """NRK's fine-grained shift; `load` [C] are the flows of others on each channel."""
    tree, view, fabric = key.tree, key.tree.view, key.tree.fabric
    assert view is not None
    leaf, back = fabric.terminal_switch, fabric.channel_reverse
    loads = np.asarray(load, np.float64)
    digits = key.digits.copy()
    leaves = np.flatnonzero(view.level == 1)
    ends = leaf[key.source], leaf[key.destination]
    first = tree.up_channel[leaves, : view.w[1]].T
    digits[:, 0] = _emptiest(
        key.digits[:, 0], loads, back, first,
        tree.up_channel[ends[0], : view.w[1]], tree.up_channel[ends[1], : view.w[1]], reading,
    )[key.digits[:, 0]]  # fmt: skip
    if view.height > 2:
        pods = [view.inside[2, end] for end in ends]
        for part in np.unique(key.digits[:, 0]):
            some = np.flatnonzero((key.digits[:, 0] == part) & (pods[0] != pods[1]))
            if len(some):
                ways = tree.second_channel[:, digits[some[0], 0], :]
                to = _emptiest(
                    key.digits[some, 1], loads, back, ways.T,
                    ways[pods[0][some]], ways[pods[1][some]], reading,
                )  # fmt: skip
                digits[some, 1] = to[key.digits[some, 1]]
    return unshifted(with_digits(key, digits), load)


def _emptiest(
    colour: U8, load: F64, back: I32, of_switch: I32, up: I32, down: I32, reading: str
) -> U8:
    """uint8[w]: the switch of each colour. `of_switch` int32[w, links]: the channels up to each
    switch; `up`, `down` int32[N, w]: that of each flow's source, and of its destination."""
    count = np.bincount(colour, minlength=len(of_switch))
    whole = (load[of_switch] + load[back[of_switch]]).sum(axis=1)
    chosen = np.zeros(len(of_switch), np.uint8)
    free = list(range(len(of_switch)))
    for c in np.argsort(-count, kind="stable").tolist():
        if reading == OWN_LINKS and count[c]:
            own = np.concatenate([load[up[colour == c]], load[back[down[colour == c]]]])
            price = list(zip(own.max(axis=0), own.sum(axis=0), strict=True))
        else:
            price = [(each, 0.0) for each in whole]
        chosen[c] = min(free, key=lambda switch: price[switch])
        free.remove(int(chosen[c]))
    return chosen
