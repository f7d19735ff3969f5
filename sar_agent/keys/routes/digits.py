"""Which parent each flow climbs to, level by level: the two steps of routing-keys-2017, III.

At a level the flows that climb on are edges between the subtrees they leave and enter, in the plane
that the parents so far put them in; planes are coloured side by side. `equitable.py` does one level
so that no subtree has more than ⌈flows / parents⌉ of a colour, and none above it more than its
share. With one row a destination (`merged`) all flows that meet at a switch on the way up to one
destination go on together, in whatever phase: they are one *item*, of one colour. Where an item
has edges of several colours `mend.py` looks for one that does.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, Bool
from sar_agent.fabric.xgft_view import XgftView
from sar_agent.keys.routes.equitable import even_colours
from sar_agent.keys.routes.recolour import Edges, recolour


def flow_digits(
    fabric: Fabric,
    view: XgftView,
    source: I32,
    destination: I32,
    phase: I32,
    *,
    merged: bool,
) -> U8:
    """uint8[N, h - 1]: W_2 … W_h of each flow of `phase` int32[N]; 0 above its nearest common
    ancestor."""
    leaf = fabric.terminal_switch
    digits = np.zeros((len(source), view.height - 1), np.uint8)
    plane = np.zeros(len(source), np.int64)
    for level in range(1, view.height):
        inside = view.inside[level:-1]
        a, b = inside[:, leaf[source]], inside[:, leaf[destination]]
        climbing = np.flatnonzero(a[0] != b[0])
        if not len(climbing):
            break
        # Planes of a phase are problems of their own.
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
        w = view.w[level]
        if merged:
            switch = plane[climbing] * subtrees + a[0]
            item = _numbered(switch * fabric.terminals + destination[climbing])
            chosen = _merged(tails, heads, problem, item, w)
        else:
            chosen = even_colours(tails, heads, problem, w)
        digits[climbing, level - 1] = chosen
        plane[climbing] = plane[climbing] * w + chosen
    return digits


def _merged(tails: I32, heads: I32, problem: I32, item: I32, colours: int) -> I32:
    """int32[E]: one colour an item."""
    # Flows of one item in one phase are one edge of more weight.
    edge = _numbered(item.astype(np.int64) * (int(tails[0].max()) + 1) + tails[0])
    _, first, weight = np.unique(edge, return_index=True, return_counts=True)
    colour = even_colours(
        np.ascontiguousarray(tails[:, first]),
        np.ascontiguousarray(heads[:, first]),
        problem[first],
        colours,
    )
    edges = Edges(tails[0, first], heads[0, first], item[first], weight.astype(np.int32))
    found: I32 = recolour(edges, colour, colours)[edge]
    return found


def _numbered(key: I64, there: Bool | None = None) -> I32:
    """int32[N]: equal keys get equal numbers from 0, in the order of their first; -1 where not
    `there`. In this order, and not the keys', so that no index of the fabric decides anything."""
    found = np.full(len(key), -1, np.int32)
    which = np.arange(len(key)) if there is None else np.flatnonzero(there)
    _, first, inverse = np.unique(key[which], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    found[which] = rank[inverse]
    return found
