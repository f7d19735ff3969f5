"""D-mod-k on XGFTs: hop l goes to parent M_l mod w_{l+1} of the destination's label (Rodriguez et
al., 2009, Section V). No search and no weights: O(T S).
"""

from __future__ import annotations

import numpy as np

from sar_agent.config.engine import Options
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.loop_free_fill import fill_loop_free
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_agent.util.kernels import kernel


class DModK:
    """The parent follows from the destination's label."""

    name = "dmodk"
    summary = "XGFTs: the way up by the destination's label, modulo (oblivious-xgft-2009, V)"

    def labels(self, fabric: Fabric, view: XgftView, seed: int) -> U8:
        """uint8[T, h - 1]: the parent for each destination at each level."""
        return modulo_labels(view)

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no XGFT."""
        view = recognise_xgft(fabric)
        egress = digit_tables(fabric, view, self.labels(fabric, view, options.seed))
        return Routes(self.name, fabric.digest, egress[None])


def modulo_labels(view: XgftView) -> U8:
    """uint8[T, h - 1]: the label digits M_l mod w_{l+1}."""
    labels: U8 = (view.digit[:, :-1] % np.array(view.w[1:], np.int32)).astype(np.uint8)
    return labels


def digit_tables(fabric: Fabric, view: XgftView, choice: U8) -> U8:
    """uint8[T + S, S]: a switch that is no ancestor of terminal d forwards up to parent
    choice[d, level - 1] (uint8[T, h - 1]); an ancestor forwards down the only way."""
    egress = np.full((fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
    everyone = np.arange(fabric.terminals, dtype=np.int32)
    egress[: fabric.terminals] = fill_digits(fabric, view, everyone, choice)
    egress[: fabric.terminals][~fabric.is_host_port] = NO_ROUTE
    fill_loop_free(fabric, graph_of(fabric), egress)
    return egress


def fill_digits(fabric: Fabric, view: XgftView, terminals: I32, choice: U8) -> U8:
    """uint8[D, S]: the rows of these terminals, int32[D]; `choice` is uint8[D, h - 1]."""
    rows = np.empty((len(terminals), fabric.switches), np.uint8)
    _fill(
        view.level, view.subtree, view.inside, view.digit[terminals], view.up, view.down,
        fabric.terminal_switch[terminals], fabric.destination_port[terminals], choice, rows,
    )  # fmt: skip
    return rows


@kernel
def _fill(
    level: U8,
    subtree: I32,
    inside: I32,
    digit: I32,
    up: U8,
    down: U8,
    leaf_of: I32,
    last_port: U8,
    choice: U8,
    egress: U8,
) -> None:  # pragma: no cover
    switches = np.uint32(len(level))
    for d in range(np.uint32(len(leaf_of))):
        tree, leaf = egress[d], np.uint32(leaf_of[d])
        for s in range(switches):
            at = np.uint32(level[s])
            if inside[at, leaf] != subtree[s]:
                tree[s] = up[s, choice[d, at - np.uint32(1)]]
            elif at > 1:
                tree[s] = down[s, digit[d, at - np.uint32(1)]]
            else:
                tree[s] = last_port[d]
