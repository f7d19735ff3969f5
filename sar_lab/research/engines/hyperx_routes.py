"""Routes of HyperX networks: dimension by dimension, and with four LIDs a port as PARX has them.

`dor` corrects one coordinate after the other, always in the same order of dimensions (J. H. Ahn et
al., SC09). Channels of a dimension then wait for channels of later dimensions only, so one lane is
free of credit loops. Hosts of a switch take turns on parallel cables.

`parx` follows J. Domke et al., "HyperX topology: first at-scale implementation and comparison to
the fat-tree", SC19. Every host port of a 2-D HyperX has four LIDs. Each of the four tables is made
without the cables inside one half of the network: the lower or upper half of the first dimension,
the lower or upper half of the second. Between two hosts of one half, the table that lacks its
cables leads through the other half: longer paths, and other cables. Large messages take that LID,
small ones a LID with a shortest path. Each table balances routes of the running jobs (`sar`), where
the paper takes a profile of the programs' messages.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.routing.sar import destination_order
from sar_agent.routing.weighted_trees import grow_trees
from sar_agent.util.kernels import kernel
from sar_lab.research.engines.hyperx_view import HyperXView, recognise_hyperx

HALVES = 4
PARX_LMC = 2


class Dor:
    """Oblivious; serves HyperX networks only."""

    name = "dor"
    summary = "HyperX: one dimension after the other, one lane (Ahn et al., SC09)"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no HyperX with a live cable for every pair."""
        view = recognise_hyperx(fabric)
        first, port = _cables(fabric, view)
        order = np.lexsort((fabric.terminal_switch_port, fabric.terminal_switch))
        turn = np.zeros(fabric.destinations, np.uint32)
        leaf = fabric.terminal_switch[order]
        turn[order] = np.arange(fabric.terminals) - np.searchsorted(leaf, leaf)
        egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        _dimension_by_dimension(
            view.coordinate.astype(np.uint32),
            np.array(view.dims, np.uint32),
            first,
            port,
            fabric.destination_switch.astype(np.uint32),
            fabric.destination_port,
            turn,
            egress,
        )
        egress[: fabric.terminals][~fabric.terminal_up] = NO_ROUTE
        return Routes(self.name, fabric.digest, egress[None])


class Parx:
    """Knows jobs; serves HyperX networks of two dimensions, with LMC 2 or more."""

    name = "parx"
    summary = "2-D HyperX: four LIDs a port, each without half of the cables; LMC 2 (SC19)"
    knows_jobs = True

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Offset o is made without half o % 4. Raises `Unserved` where the fabric is no HyperX of
        two dimensions, and for an LMC below 2."""
        if options.lmc < PARX_LMC:
            raise Unserved(f"parx has {HALVES} LIDs for each port; it needs an LMC of {PARX_LMC}")
        view = recognise_hyperx(fabric)
        if len(view.dims) != 2:
            raise Unserved(
                f"{fabric.name} is a HyperX of {len(view.dims)} dimensions, and parx serves two; "
                "take dor or sar-plus"
            )
        order = destination_order(fabric, mix)
        tables = []
        for inside in half_of(view):
            cut = inside[fabric.channel_source] & inside[fabric.channel_target]
            rest = fabric.with_links_down(np.flatnonzero(cut))
            tables.append(grow_trees(rest, mix, *order))
        egress = np.stack(tables * ((1 << options.lmc) // HALVES))
        return Routes(
            self.name,
            fabric.digest,
            egress,
            jobs_digest=mix.digest(fabric),
        )


def half_of(view: HyperXView) -> Bool:
    """bool[4, S]: whether a switch is in the lower and upper half of the first, then of the second
    dimension."""
    lower = view.coordinate < (np.array(view.dims) + 1) // 2
    return np.stack([lower[:, 0], ~lower[:, 0], lower[:, 1], ~lower[:, 1]])


def _cables(fabric: Fabric, view: HyperXView) -> tuple[U32, U8]:
    """(uint32[S L M + 1], uint8[·]), M the longest side: entry (s L + axis) M + place holds the
    live egress ports of s to the switch of that place in its row."""
    longest, axes = max(view.dims, default=1), max(1, len(view.dims))
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source[live], fabric.channel_target[live]
    axis = np.argmax(view.coordinate[source] != view.coordinate[target], axis=1) if len(live) else 0
    place = view.coordinate[target, axis] if len(live) else 0
    entry = (source.astype(np.int64) * axes + axis) * longest + place
    order = np.argsort(entry, kind="stable")
    size = np.bincount(entry, minlength=fabric.switches * axes * longest)
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.uint32)
    return first, fabric.channel_port[live][order].astype(np.uint8)


@kernel
def _dimension_by_dimension(
    coordinate: U32,
    dims: U32,
    first: U32,
    port: U8,
    root_of: U32,
    last_port: U8,
    turn: U32,
    egress: U8,
) -> None:  # pragma: no cover
    longest = np.uint32(0)
    for side in dims:
        longest = max(longest, side)
    axes, switches = np.uint32(len(dims)), np.uint32(egress.shape[1])
    for d in range(np.uint32(len(egress))):
        root = root_of[d]
        for s in range(switches):
            if s == root:
                egress[d, s] = last_port[d]
                continue
            axis = np.uint32(0)
            while coordinate[s, axis] == coordinate[root, axis]:
                axis += np.uint32(1)
            entry = (s * axes + axis) * longest + coordinate[root, axis]
            cables = first[entry + np.uint32(1)] - first[entry]
            egress[d, s] = port[first[entry] + turn[d] % cables]
