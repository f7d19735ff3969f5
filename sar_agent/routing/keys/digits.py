"""The parent that each flow climbs to, level by level: the two steps of routing-keys-2017, III.

At each level the flows that climb further are edges between the subtrees they leave and enter.
Their parents so far put them in a *plane*; planes are coloured independently. `equitable.py`
colours one level so that no subtree has more than ⌈flows / parents⌉ edges of a colour, nor any
subtree above it more than its share; `uneven.py` fills few parents instead, where that keeps all
flows apart. With one row a destination (`merged`), all flows to one
destination that meet at a switch on the way up go on together, whatever their phase: they are one
*item*, which has one colour. Where colouring gave the edges of an item several colours,
`recolour.py` finds one for all of them.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, Bool
from sar_agent.fabric.xgft_view import XgftView
from sar_agent.routing.keys.equitable import even_colours
from sar_agent.routing.keys.recolour import Edges, recolour
from sar_agent.routing.keys.uneven import make_uneven


def flow_digits(
    fabric: Fabric,
    view: XgftView,
    source: I32,
    destination: I32,
    phase: I32,
    *,
    merged: bool,
    fewest: bool = False,
) -> U8:
    """uint8[N, h - 1]: W_2 … W_h of each flow of `phase` int32[N]; 0 above its nearest common
    ancestor. `fewest`: over as few parents as keep flows apart, as unevenly as can be, not evenly
    over all."""
    leaf = fabric.terminal_switch
    digits = np.zeros((len(source), view.height - 1), np.uint8)
    plane = np.zeros(len(source), np.int64)
    for level in range(1, view.height):
        inside = view.inside[level:-1]
        a, b = inside[:, leaf[source]], inside[:, leaf[destination]]
        climbing = np.flatnonzero(a[0] != b[0])
        if not len(climbing):
            break
        # Each plane of a phase is a problem of its own.
        problem = _numbered(
            phase[climbing].astype(np.int64) * (int(plane.max()) + 1) + plane[climbing]
        )
        order = np.argsort(problem, kind="stable")
        climbing, problem = climbing[order], problem[order]
        a, b = a[:, climbing], b[:, climbing]
        subtrees = int(inside.max()) + 1
        where = problem.astype(np.int64) * subtrees
        tails = np.stack(
            [_numbered(where + row, row != other) for row, other in zip(a, b, strict=True)]
        )
        heads = np.stack(
            [_numbered(where + row, row != other) for row, other in zip(b, a, strict=True)]
        )
        w = view.w[level:]
        if merged:
            switch = plane[climbing] * subtrees + a[0]
            item = _numbered(switch * fabric.terminals + destination[climbing])
            chosen = _merged(tails, heads, problem, item, w, fewest)
        else:
            chosen = _colours(tails, heads, problem, w, fewest)
        digits[climbing, level - 1] = chosen
        plane[climbing] = plane[climbing] * w[0] + chosen
    return digits


def _colours(tails: I32, heads: I32, problem: I32, w: tuple[int, ...], fewest: bool) -> I32:
    """int32[E]: colours, even over the `w[0]` parents, or uneven over the `fewest`: so many that
    each subtree has a channel for each flow that leaves or enters it, or all where there are too
    few."""
    few = np.full(int(problem.max()) + 1, 1 if fewest else w[0], np.int64)
    room = np.cumprod((1, *w[1:]))
    for ends in (tails, heads) if fewest else ():
        for row, channels in zip(ends, room, strict=True):
            some = np.flatnonzero(row >= 0)
            _, first, flows = np.unique(row[some], return_index=True, return_counts=True)
            np.maximum.at(few, problem[some[first]], -(-flows // channels))
    few = np.minimum(few, w[0])
    colour: I32 = even_colours(tails, heads, problem, few.astype(np.int32))
    if fewest:
        make_uneven(tails, heads, problem, colour, w[0], room.astype(np.int32))
    return colour


def _merged(
    tails: I32, heads: I32, problem: I32, item: I32, w: tuple[int, ...], fewest: bool
) -> I32:
    """int32[E]: colours, one for all edges of an item."""
    # Flows of one item in one phase are one edge of more weight.
    edge = _numbered(item.astype(np.int64) * (int(tails[0].max()) + 1) + tails[0])
    _, first, weight = np.unique(edge, return_index=True, return_counts=True)
    below, above = (np.ascontiguousarray(each[:, first]) for each in (tails, heads))
    colour = _colours(below, above, problem[first], w, fewest)
    edges = Edges(tails[0, first], heads[0, first], item[first], weight.astype(np.int32))
    chosen: I32 = recolour(edges, colour, w[0])[edge]
    return chosen


def _numbered(key: I64, wanted: Bool | None = None) -> I32:
    """int32[N]: numbers keys from 0 in the order in which they first appear; -1 where not `wanted`.
    The order is not that of the keys' values, so that no index of the fabric decides anything."""
    number = np.full(len(key), -1, np.int32)
    which = np.arange(len(key)) if wanted is None else np.flatnonzero(wanted)
    _, first, inverse = np.unique(key[which], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    number[which] = rank[inverse]
    return number
