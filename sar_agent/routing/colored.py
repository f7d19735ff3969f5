"""`colored`: routes for a pattern that is known, the bound of what oblivious routes can do.

On an XGFT the flows that leave leaf switches are edges between source leaf and destination leaf of
a bipartite multigraph, and the parent that a flow climbs to is its colour. A colouring in which no
leaf has more than ⌈flows / parents⌉ edges of a colour exists (König), and keeps every channel up
from and down to the leaves at the least possible. Then the same one level up, among the flows of
one parent's plane. For permutations on k-ary n-trees that is one flow a channel at every level, the
theorem behind rearrangeable networks; on slimmed trees of several levels what is best at one level
can hurt the next, so there the result stands beside its bound.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numba import njit

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.jobs.patterns import phases_of
from sar_agent.routing.engine import Options
from sar_agent.routing.paths import PathRoutes
from sar_agent.routing.routes import Routes


class Contention(NamedTuple):
    """Of one phase."""

    flows: int
    """Most flows of the phase on a channel between switches."""
    bound: int
    """No routes have fewer: flows that leave or enter a subtree over its channels up or down."""


class Colored:
    """Pattern-aware; without LMC it can only be looked at."""

    name = "colored"
    summary = "XGFTs: least contention for a known --pattern; needs LMC (oblivious-xgft-2009, VII)"

    def paths(self, fabric: Fabric, mix: JobMix, options: Options) -> PathRoutes:
        """Raises `Unserved` without a pattern and where the fabric is no XGFT, `InputError` where
        the pattern does not fit a job. A pair that several phases have keeps its first route."""
        if not options.pattern:
            raise Unserved("colored routes a pattern: name one, e.g. --pattern shift:1")
        view = recognise_xgft(fabric)
        known: dict[int, bytes] = {}
        for source, destination in phases(fabric, mix, options.pattern):
            colours = colour(fabric, view, source, destination)
            pairs = source.astype(np.int64) * fabric.terminals + destination
            for pair, digits in zip(pairs.tolist(), colours, strict=True):
                known.setdefault(pair, digits.tobytes())
        keys = np.array(sorted(known), np.int64)
        values = np.frombuffer(b"".join(known[k] for k in keys.tolist()), np.uint8)
        digits = values.reshape(len(keys), view.height - 1)
        usual = np.array(view.w[1:], np.int32)

        def choose(source: I32, destination: I32) -> U8:
            """Pairs that are in no phase go as dmodk sends them."""
            chosen = (view.digit[destination, :-1] % usual).astype(np.uint8)
            pair = source.astype(np.int64) * fabric.terminals + destination
            place = np.minimum(np.searchsorted(keys, pair), max(0, len(keys) - 1))
            there = keys[place] == pair if len(keys) else np.zeros(len(pair), np.bool_)
            chosen[there] = digits[place[there]]
            return chosen

        return PathRoutes(self.name, fabric, view, choose)

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """A table for each root; raises `Unserved`, too, where `options.lmc` gives too few."""
        began = time.perf_counter()
        routes = self.paths(fabric, mix, options).as_tables(options.lmc)
        return Routes(self.name, fabric.digest, routes.egress, seconds=time.perf_counter() - began)


def phases(fabric: Fabric, mix: JobMix, pattern: str) -> list[tuple[I32, I32]]:
    """Phase i of the pattern in all jobs at once."""
    of_jobs = [phases_of(pattern, fabric, job) for job in mix.jobs]
    found = []
    for i in range(max(map(len, of_jobs), default=0)):
        parts = [of_job[i] for of_job in of_jobs if i < len(of_job)]
        found.append((np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])))
    return found


def contention(paths: PathRoutes, source: I32, destination: I32) -> Contention:
    """Of the flows source → destination, int32[N] each, on their routes."""
    channels = paths.channels(source, destination)
    count = np.bincount(channels[channels >= 0], minlength=1)
    view, leaf = paths.view, paths.fabric.terminal_switch
    bound, ways = 0, 1
    for level in range(1, view.height):
        ways *= view.w[level]
        a, b = view.inside[level, leaf[source]], view.inside[level, leaf[destination]]
        for end in (a[a != b], b[a != b]):
            bound = max(bound, -(-int(np.bincount(end, minlength=1).max()) // ways))
    return Contention(int(count.max()), bound)


def colour(fabric: Fabric, view: XgftView, source: I32, destination: I32) -> U8:
    """uint8[N, h - 1]: W_2 … W_h for each flow; 0 above its nearest common ancestor."""
    leaf = fabric.terminal_switch
    digits = np.zeros((len(source), view.height - 1), np.uint8)
    plane = np.zeros(len(source), np.int64)
    for level in range(1, view.height):
        a, b = view.inside[level, leaf[source]], view.inside[level, leaf[destination]]
        climbing = np.flatnonzero(a != b)
        if not len(climbing):
            break
        # A switch is its subtree and its plane; planes are coloured side by side.
        subtrees = int(view.inside[level].max()) + 1
        tail = plane[climbing] * subtrees + a[climbing]
        head = plane[climbing] * subtrees + b[climbing]
        nodes = int(max(tail.max(), head.max())) + 1
        degree = int(max(np.bincount(tail).max(), np.bincount(head).max()))
        w = view.w[level]
        each = -(-degree // w)
        found = _edge_colouring(tail.astype(np.int32), head.astype(np.int32), nodes, w * each)
        digits[climbing, level - 1] = found % w
        plane[climbing] = plane[climbing] * w + found % w
    return digits


@njit(cache=True)
def _edge_colouring(tail: I32, head: I32, nodes: int, colours: int) -> I32:  # pragma: no cover
    """int32[N]: a colour for each edge, none twice at a tail or at a head; `colours` is at least
    the largest degree. Edge by edge, turning an alternating path where the two ends have no free
    colour in common (König)."""
    used = np.full((2 * nodes, colours), -1, np.int32)  # the edge of that colour
    colour = np.full(len(tail), -1, np.int32)
    path = np.empty(len(tail), np.int32)
    for e in range(len(tail)):
        u, v = tail[e], nodes + head[e]
        a = 0
        while used[u, a] >= 0:
            a += 1
        b = 0
        while used[v, b] >= 0:
            b += 1
        if used[v, a] >= 0:
            # a is free at u, b at v: the path of a, b, a, … from v never ends at u (where it
            # comes to a tail, it comes by a), so its two colours may change places.
            length, at, c = 0, v, a
            while used[at, c] >= 0:
                path[length] = used[at, c]
                at = nodes + head[path[length]] if at < nodes else tail[path[length]]
                length += 1
                c = a + b - c
            for k in range(length):
                p = path[k]
                used[tail[p], colour[p]] = used[nodes + head[p], colour[p]] = -1
            for k in range(length):
                p = path[k]
                colour[p] = a + b - colour[p]
                used[tail[p], colour[p]] = used[nodes + head[p], colour[p]] = p
        used[u, a] = e
        used[v, a] = e
        colour[e] = a
    return colour
