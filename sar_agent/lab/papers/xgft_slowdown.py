"""How much slower a pattern is on a tree than on one ideal crossbar (oblivious-xgft-2009, VI-VII).

The paper plays traces through a flit simulator; here messages of a phase share links max-min
fairly, all start together, and a phase begins when the one before has ended. Sizes and link speeds
cancel out, as messages of a program are alike: times are in messages at full speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.lab.fluid.events import end_times
from sar_agent.lab.fluid.flows import Flows
from sar_agent.lab.fluid.links import links_of
from sar_agent.routing.colored import colour
from sar_agent.routing.engine import load_engine
from sar_agent.routing.paths import Choice, PathRoutes

Phase = tuple[I32, I32]
"""(senders int32[N], receivers int32[N]), terminals."""


@cache
def slimmed(roots: int) -> tuple[Fabric, XgftView]:
    """XGFT(2;16,16;1,roots): the paper's trees of 32-port switches."""
    fabric = xgft_fabric(f"xgft:2;16,16;1,{roots}")
    return fabric, recognise_xgft(fabric)


def wrf_256() -> list[Phase]:
    """WRF on 256 processes: a 16 x 16 mesh, each sends to the ones 16 before and after it, both at
    once."""
    ranks = np.arange(256, dtype=np.int32)
    source = np.concatenate([ranks[:-16], ranks[16:]])
    return [(source, np.concatenate([ranks[16:], ranks[:-16]]))]


def cg_d_128() -> list[Phase]:
    """NAS CG on 128 processes, 8 rows of 16: four exchanges inside a row, then with the transposed
    process.

    Rank 2 a + b talks to 2 (a mod 8 · 8 + a div 8) + b. The paper's Equation 2 is that for the
    first row. A process on the diagonal is its own partner and sends nothing (ERRATA)."""
    ranks = np.arange(128, dtype=np.int32)
    half, low = np.divmod(ranks, 2)
    transposed = (2 * (half % 8 * 8 + half // 8) + low).astype(np.int32)
    partners = [ranks ^ np.int32(1 << bit) for bit in range(4)] + [transposed]
    return [(ranks[ranks != to], to[ranks != to]) for to in partners]


def choice_of(name: str, fabric: Fabric, view: XgftView, seed: int = 0) -> Choice:
    """The way up under an oblivious engine, whether it asks the source or the destination."""
    engine = load_engine(name)
    if hasattr(engine, "choice"):
        chosen: Choice = engine.choice(fabric, view, seed)
        return chosen
    labels = engine.labels(fabric, view, seed)  # type: ignore[attr-defined]
    return lambda source, destination: labels[destination]


def times(
    name: str, fabric: Fabric, view: XgftView, phases: Sequence[Phase], seed: int = 0
) -> list[float]:
    """Of each phase, divided by what it takes on a crossbar; `colored` knows each phase."""
    found = []
    for source, destination in phases:
        choose = (
            (lambda s, d: colour(fabric, view, s, d))
            if name == "colored"
            else choice_of(name, fabric, view, seed)
        )
        channels = PathRoutes(name, fabric, view, choose).channels(source, destination)
        nowhere = np.empty((len(source), 0), np.int32)
        ideal = phase_time(fabric, source, destination, nowhere)
        # Shares of a link are added up in floats; what is whole on paper is whole here.
        found.append(round(phase_time(fabric, source, destination, channels) / ideal, 9))
    return found


def phase_time(fabric: Fabric, source: I32, destination: I32, channels: I32) -> float:
    """Until the last message of size 1 is through, all links of speed 1; `channels` as
    `PathRoutes.channels` gives them."""
    first = fabric.channels
    ends = np.stack([first + source, first + fabric.terminals + destination], axis=1)
    link = np.concatenate([channels, ends], axis=1)
    crossed = link >= 0
    path = np.concatenate([[0], np.cumsum(crossed.sum(axis=1))]).astype(np.uint32)
    links = links_of(np.ones(first + 2 * fabric.terminals), path, link[crossed].astype(np.uint32))
    count = len(source)
    zeros = np.zeros(count, np.uint32)
    flows = Flows(
        source.astype(np.uint32), destination.astype(np.uint32), np.ones(count), zeros, zeros,
        np.ones(1, np.bool_),
    )  # fmt: skip
    return float(end_times(links, flows).max())
