"""Up*/Down* and fat-tree routing: legal paths (`updown_paths.py`), two rules for the port.

`updn`: every switch takes the port that fewest destinations have, as OpenSM's engine of that name.
Among ports used equally it takes the one to the switch that fewest routes pass, not the lowest as
OpenSM does, and the levels are our own.
Where some leaf switches of what resembles a tree share no root, `even_updown.py` makes the tables;
on tori and Dragonflies levels are hops from the switch that is nearest to all leaf switches.

`ftree`: as OpenSM's engine, in index order (Zahavi's D-mod-k). From a host's leaf one *main* way up
is chosen, at each level the parent whose channel down to here leads to fewest hosts, so that the
hosts of a leaf, then the leaves of a subtree, take turns. Switches below the main way go up to it;
all others go down wherever they can. A host's traffic then comes down one way only, and all traffic
on that way has the same destination. Both cost O(S + C) for each terminal.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, U32, Bool
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.even_updown import around, even_tables
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.destination_order import leaf_by_leaf
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.turn_order import places_by_height
from sar_agent.routing.updown_paths import (
    Orientation,
    RootDistances,
    legal_tree,
    new_row,
    orient,
    unreached_leaves,
)
from sar_agent.util.kernels import kernel, kernel_part

LAST = np.uint64(2**64 - 1)


class Updn:
    """Oblivious; free of credit loops in one lane on any fabric."""

    name = "updn"
    summary = "up*/down*: no credit loop on any fabric in one lane (OpenSM's, but for ties)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for any fabric."""
        graph = graph_of(fabric)
        if legal := updn_order(fabric, graph):
            egress = _host_rows(fabric, graph, legal)
        elif places := places_by_height(fabric, graph):
            egress = even_tables(fabric, graph, places)
        else:
            egress = _host_rows(fabric, graph, orient(fabric, around(fabric, graph)))
        fill_loop_free(fabric, graph, egress)
        return Routes(self.name, fabric.digest, egress[None])


class Ftree:
    """Oblivious; serves fat trees only."""

    name = "ftree"
    summary = "fat trees: hosts of a leaf take turns on the ways up (OpenSM's ftree, index order)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no fat tree, or too much of it is broken."""
        graph = graph_of(fabric)
        legal = tree_order(fabric, graph)
        egress = _host_rows(fabric, graph, legal, main=True)
        fill_loop_free(fabric, graph, egress)
        return Routes(self.name, fabric.digest, egress[None])


def tree_order(fabric: Fabric, graph: Graph) -> Orientation:
    """The orientation of a fat tree's channels. Raises `Unserved` where the fabric is no fat tree,
    or where two leaf switches have no switch above both any more."""
    legal = orient(fabric, tree_levels(fabric))
    a, b = unreached_leaves(graph, legal, new_row(fabric), fabric.leaves.astype(np.uint32))
    if a >= 0:
        raise Unserved(
            f'{fabric.name}: leaf switches "{fabric.switch_name[a]}" and '
            f'"{fabric.switch_name[b]}" have no common switch above them; updn or sar-plus serve'
        )
    return legal


def updn_order(fabric: Fabric, graph: Graph) -> Orientation | None:
    """The orientation by tree levels; None where some leaf switches then do not reach others."""
    with suppress(Unserved):
        legal = orient(fabric, tree_levels(fabric))
        leaves = fabric.leaves.astype(np.uint32)
        if unreached_leaves(graph, legal, new_row(fabric), leaves)[0] < 0:
            return legal
    return None


def _host_rows(fabric: Fabric, graph: Graph, legal: Orientation, *, main: bool = False) -> U8:
    """uint8[T + S, S]: egress ports to host ports, `NO_ROUTE` elsewhere."""
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    order = leaf_by_leaf(fabric)[: fabric.terminals]
    order = order[fabric.is_host_port[order]]
    egress[order] = legal_rows(fabric, graph, legal, order, main=main)
    return egress


def legal_rows(
    fabric: Fabric,
    graph: Graph,
    legal: Orientation,
    terminals: U32,
    *,
    main: bool = False,
) -> U8:
    """uint8[D, S]: egress ports to these terminals, those of one leaf together; with `main` as
    `ftree` chooses them, else as `updn`."""
    rows = np.full((len(terminals), fabric.switches), NO_ROUTE, np.uint8)
    _spread(
        graph,
        legal,
        new_row(fabric),
        fabric.channel_reverse.astype(np.uint32),
        fabric.terminal_switch[terminals].astype(np.uint32),
        fabric.terminal_switch_port[terminals].astype(np.uint8),
        np.arange(len(terminals), dtype=np.uint32),
        np.zeros(max(1, fabric.channels), np.int32),
        main,
        rows,
    )
    return rows


@kernel
def _spread(
    graph: Graph,
    legal: Orientation,
    row: RootDistances,
    reverse: U32,
    root_of: U32,
    last_port: U8,
    dests: U32,
    used: I32,
    main: bool,
    egress: U8,
) -> None:  # pragma: no cover
    """Fills rows `dests` (those of one leaf together) of `egress` uint8[D, S]; `used` int32[C]
    counts the destinations of each channel so far."""
    switches = egress.shape[1]
    on_main = np.zeros(switches, np.bool_)
    through = np.zeros(switches, np.int32)
    one = np.uint32(1)
    for d in dests:
        root, tree = root_of[d], egress[d]
        legal_tree(graph, legal, row, root, last_port[d], tree)
        if main:
            on_main[:] = False
            _main_way(graph, legal, reverse, root, used, on_main, tree)
        for i in range(one, row.size[0]):
            v = row.order[i]
            if on_main[v]:
                continue
            best, least = row.edge[row.start[i]], LAST
            for e in range(row.start[i], row.start[i + one]):
                c = row.edge[e]
                w = graph.target[c]
                # Joins the main way, then used least; then to the switch that fewest routes pass.
                # One number, since no processor guesses the outcome of three comparisons.
                turn = np.uint64(main and not on_main[w]) << np.uint64(63)
                turn |= np.uint64(used[c]) << np.uint64(32) | np.uint64(through[w])
                if turn < least:
                    best, least = c, turn
            joins = main and on_main[graph.target[best]]
            tree[v] = graph.port[best]
            if not (main and row.falls[v]):  # a way down beside the main way is no part of it
                on_main[v] = joins
                used[best] += 1
                through[graph.target[best]] += 1


@kernel_part
def _main_way(
    graph: Graph, legal: Orientation, reverse: U32, root: int, used: I32, on_main: Bool, tree: U8
) -> None:  # pragma: no cover
    """Marks a way up from `root`, each time to the parent whose channel down is used least, and
    writes the way down into `tree` uint8[S]."""
    v = np.uint32(root)
    on_main[v] = True
    while True:
        best = np.int64(-1)
        for c in range(graph.offset[v], graph.offset[v + np.uint32(1)]):
            if legal.higher[c] and (best < 0 or used[reverse[c]] < used[reverse[np.uint32(best)]]):
                best = np.int64(c)
        if best < 0:
            return
        down = reverse[np.uint32(best)]
        v = graph.target[np.uint32(best)]
        tree[v] = graph.port[down]
        used[down] += 1
        on_main[v] = True
