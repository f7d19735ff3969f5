"""Source-routed routes on an XGFT: the way up may depend on the source, too.

On the way up every level has one choice, the parent; the way down is unique. So a route is
identified by its *NCA* (nearest common ancestor): the digits W_2 … W_h of the root that it climbs
towards (oblivious-xgft-2009, Section II). A forwarding table knows destinations only, so it holds
one NCA for each LID: with LMC, LID offset o of every host leads over NCA o, and a sender selects
the route by the offset that it sends to. That takes as many offsets as the tree has roots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8
from sar_agent.fabric.xgft_view import XgftView
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, is_source_routed
from sar_agent.routing.dmodk import digit_tables
from sar_agent.routing.engine import SourceRouted
from sar_agent.routing.keys.key import digit_channels
from sar_agent.routing.keys.key_tree import KeyTree
from sar_agent.routing.routes import Routes

ParentChoice = Callable[[I32, I32], U8]
"""(sources int32[N], destinations int32[N]) → uint8[N, h - 1]: W_2 … W_h of each route."""
LMC_MOST = 7


@dataclass(frozen=True, eq=False)
class PathRoutes:
    """A route for every ordered pair of terminals, computed on demand."""

    engine: str
    fabric: Fabric
    view: XgftView
    choose: ParentChoice
    one_root_per_source: bool = False
    """Whether all routes of a source climb towards one root, so that one LID offset serves it."""

    def nca(self, source: I32, destination: I32) -> I64:
        """int64[N]: the root that each route climbs towards, W_2 + w_2 (W_3 + w_3 (…))."""
        return nca_index(self.view, self.choose(source, destination))

    def channels(self, source: I32, destination: I32) -> I32:
        """int32[N, 2 (h - 1)]: the channels between switches in the order of travel, then -1."""
        tree, digits = KeyTree(self.fabric, self.view), self.choose(source, destination)
        return digit_channels(tree, source, destination, digits)

    def as_tables(self, lmc: int) -> Routes:
        """Tables with one LID offset for each root; offset o leads over NCA o. Raises `Unserved`
        where 2**lmc offsets are fewer than the roots."""
        needed = self.view.ncas
        least = (needed - 1).bit_length()
        if needed > 1 << lmc:
            remedy = f"--lmc {least} would do" if least <= LMC_MOST else "more than LMC allows"
            raise Unserved(
                f"{self.engine} routes by source, which forwarding tables cannot hold; it needs "
                f"{needed} LID offsets on {self.fabric.name}: {remedy}"
            )
        return Routes(self.engine, self.fabric.digest, _nca_tables(self.fabric, self.view))


def nca_index(view: XgftView, digits: U8) -> I64:
    """int64[N]: the number of each root, from its digits uint8[N, h - 1]."""
    index = np.zeros(len(digits), np.int64)
    for level in range(view.height - 1, 0, -1):
        index = index * view.w[level] + digits[:, level - 1]
    return index


def _nca_tables(fabric: Fabric, view: XgftView) -> U8:
    """uint8[roots, T + S, S]: table o leads all traffic over root o = W_2 + w_2 (W_3 + …)."""
    tables = []
    for nca in range(view.ncas):
        digits, rest = [], nca
        for w in view.w[1:]:
            rest, digit = divmod(rest, w)
            digits.append(digit)
        choice = np.tile(np.array(digits, np.uint8), (fabric.terminals, 1))
        tables.append(digit_tables(fabric, view, choice))
    return np.stack(tables)


class PathEngine(SourceRouted, Protocol):
    """A source-routed engine that computes its routes without tables."""

    name: str

    def paths(self, fabric: Fabric, mix: JobMix, options: Options) -> PathRoutes:
        """The routes, whatever LMC the fabric has. Raises `Unserved`."""


def has_paths(engine: Any) -> TypeGuard[PathEngine]:
    """Whether the engine is source-routed, and so can compute its routes without tables."""
    return is_source_routed(engine)
