"""Flows of routing keys followed through the rows, and the optimum by trying."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from math import inf

import numpy as np
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.routing.keys import KeyTree, RoutingKey, make_key, rows_of, unshifted
from sar_agent.routing.keys.key import digit_channels
from sar_agent.routing.keys.shift import Shift

Pairs = list[tuple[int, int]]


def flows(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(pairs, np.int32).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def key_of(tree: KeyTree, *phases: Pairs, shifted: bool = False) -> RoutingKey:
    return make_key(tree, [flows(pairs) for pairs in phases], shifted=shifted)


def permutation(random: np.random.Generator, hosts: int) -> tuple[np.ndarray, np.ndarray]:
    target = random.permutation(hosts).astype(np.int32)
    source = np.arange(hosts, dtype=np.int32)
    return source[source != target], target[source != target]


def followed(key: RoutingKey, shift: Shift | None = None) -> list[Counter[int]]:
    """By phase: flows on each channel, hop by hop through the rows that would be installed."""
    fabric = key.tree.fabric
    rows = rows_of(key, shift or unshifted(key), fabric)
    table = np.zeros((fabric.terminals, fabric.switches), np.uint8)
    table[rows.destinations] = rows.egress
    found: list[Counter[int]] = [Counter() for _ in range(key.phases)]
    at, goal = fabric.terminal_switch[key.source], fabric.terminal_switch[key.destination]
    target, phase = key.destination, key.phase
    for _ in range(8):
        away = at != goal
        at, goal, target, phase = at[away], goal[away], target[away], phase[away]
        channel = fabric.channel_by_port[at, table[target, at]]
        assert (channel >= 0).all() and fabric.channel_up[channel].all()
        for p, c in zip(phase.tolist(), channel.tolist(), strict=True):
            found[p][c] += 1
        at = fabric.channel_target[channel]
    assert not len(at), "some flow does not arrive"
    return found


def most(key: RoutingKey, shift: Shift | None = None) -> list[int]:
    return [max(count.values(), default=0) for count in followed(key, shift)]


def optimum(tree: KeyTree, pairs: Pairs) -> int:
    """The least contention of one phase that whole rows can have, by trying all of them."""
    fabric, view = tree.fabric, tree.view
    assert view is not None
    leaf = fabric.terminal_switch
    away = [(s, d) for s, d in pairs if leaf[s] != leaf[d]]
    ways = []
    for s, d in away:
        source, target = flows([(s, d)])
        found = {
            tuple(digit_channels(tree, source, target, np.array([digits], np.uint8))[0].tolist())
            for digits in product(*(range(w) for w in view.w[1:]))
        }
        ways.append(sorted(tuple(c for c in way if c >= 0) for way in found))
    best = inf
    load: Counter[int] = Counter()
    via: dict[tuple[int, int], list[int]] = {}

    def lay(i: int) -> None:
        nonlocal best
        if i == len(away):
            best = min(best, max(load.values(), default=0))
            return
        d = away[i][1]
        for way in ways[i]:
            hops = [(int(fabric.channel_source[c]), d) for c in way]
            if any(via.get(h) and via[h][-1] != c for h, c in zip(hops, way, strict=True)):
                continue
            if max(load[c] + 1 for c in way) >= best:
                continue
            for h, c in zip(hops, way, strict=True):
                load[c] += 1
                via.setdefault(h, []).append(c)
            lay(i + 1)
            for h, c in zip(hops, way, strict=True):
                load[c] -= 1
                via[h].pop()

    lay(0)
    return int(best)


def shifts(key: RoutingKey, load: np.ndarray) -> Iterator[tuple[float, float]]:
    """(largest load, sum of squares) of every shift of a two- or three-level XGFT."""
    view = key.tree.view
    assert view is not None
    w2, w3 = view.w[1], view.w[2] if view.height > 2 else 1
    roots = list(permutations(range(w3)))
    for planes in permutations(range(w2)):
        for below in product(roots, repeat=w2):
            digits = key.digits.copy()
            if view.height > 2:
                a, b = key.digits[:, 0], key.digits[:, 1]
                digits[:, 1] = np.array(below, np.uint8)[a, b]
            digits[:, 0] = np.array(planes, np.uint8)[key.digits[:, 0]]
            channels = digit_channels(key.tree, key.source, key.destination, digits)
            own = np.zeros(len(load), np.int64)
            for p in range(key.phases):
                used = channels[key.phase == p]
                own = np.maximum(own, np.bincount(used[used >= 0], minlength=len(load)))
            both = (own + load)[own > 0]
            yield float(both.max(initial=0)), float(((own + load) ** 2 - load**2).sum())


@st.composite
def phases(draw: st.DrawFn, fabric: Fabric, size: int, sources: bool) -> Pairs:
    """At most `size` flows; with `sources` several to one host."""
    host = st.integers(0, fabric.terminals - 1)
    pair = st.tuples(host, host).filter(lambda p: p[0] != p[1])
    unique = None if sources else (lambda p: p[0], lambda p: p[1])
    return draw(st.lists(pair, min_size=1, max_size=size, unique_by=unique))
