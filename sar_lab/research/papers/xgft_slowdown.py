"""The slowdown of a pattern on a tree, compared with an ideal crossbar (oblivious-xgft-2009,
VI-VII).

The paper runs traces in a flit simulator. Here messages of a phase share links max-min fairly and
start together, and a phase begins when the previous one has ended. All messages of a program have
the same size, so sizes and link speeds cancel out: the unit of time is a message at full speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.fabric.xgft_view import XgftView, recognise_xgft
from sar_agent.routing.engine import Engine, is_source_routed, load_engine
from sar_agent.routing.keys.digits import flow_digits
from sar_lab.fluid.flow_paths import routed_links, with_rates
from sar_lab.fluid.flow_steps import seconds_alone
from sar_lab.fluid.path_routes import ParentChoice, PathRoutes
from sar_lab.research.packets import PacketModel, packet_times
from sar_lab.research.trace import Program, ProgramPhase, ProgramTrace
from sar_lab.research.trace.parse import read_trace
from sar_lab.research.trace.play_trace import flows_of, play_trace
from sar_lab.research.trace.program_generators import PROGRAMS, ProgramOptions
from sar_lab.research.trace.rank_placement import place_ranks

RATE = 2.0
"""Gbit/s of all links (Section VI)."""


@cache
def slimmed(roots: int) -> tuple[Fabric, XgftView]:
    """XGFT(2;16,16;1,roots): the paper's trees of 32-port switches, with links of 2 Gbit/s."""
    fabric = with_rates(xgft_fabric(f"xgft:2;16,16;1,{roots}"), RATE, RATE)
    return fabric, recognise_xgft(fabric)


@cache
def program(name: str) -> Program:
    """`wrf256` or `cgd128`, as `sar-lab make-trace` generates them."""
    return read_trace(PROGRAMS[name](ProgramOptions())).programs[0]


def choice_of(name: str, fabric: Fabric, view: XgftView, seed: int = 0) -> ParentChoice:
    """The way up under an oblivious engine, chosen by the source or by the destination."""
    engine = _engine(name)
    if is_source_routed(engine):
        chosen: ParentChoice = engine.choice(fabric, view, seed)  # type: ignore[attr-defined]
        return chosen
    labels = engine.labels(fabric, view, seed)  # type: ignore[attr-defined]
    return lambda source, destination: labels[destination]


@cache
def _engine(name: str) -> Engine:
    """Cached, since finding an engine reads the metadata of installed packages."""
    return load_engine(name)


def times(
    name: str,
    fabric: Fabric,
    view: XgftView,
    phases: Sequence[ProgramPhase],
    seed: int = 0,
    *,
    packets: PacketModel | None = None,
) -> list[float]:
    """The time of each phase, divided by its time on a crossbar; `colored` gets the messages of
    each phase. Ranks follow the order of the fabric. With `packets`, messages are segments in
    buffers, not a fluid."""

    def colour(source: I32, destination: I32) -> U8:
        once = np.zeros(len(source), np.int32)
        return flow_digits(fabric, view, source, destination, once, merged=False)

    slowdowns = []
    for phase in phases:
        choose = colour if name == "colored" else choice_of(name, fabric, view, seed)
        routes = PathRoutes(name, fabric, view, choose)
        ranks = int(phase.pairs.max()) + 1
        alone = ProgramTrace(name, (Program("1", ranks, 0.0, (phase,)),))
        if packets:
            flows = flows_of(alone, place_ranks(fabric, alone, "linear"))
            end = packet_times(fabric, routed_links(fabric, routes, flows), flows, packets).end
            slowdowns.append(float(end.max() / seconds_alone(fabric, flows, flows.step, 1)[0]))
            continue
        time = play_trace(fabric, routes, alone, place_ranks(fabric, alone, "linear"))[0]
        # Shares of a link are summed in floats; rounding restores whole numbers.
        slowdowns.append(round(float(time.sending[0] / time.alone[0]), 9))
    return slowdowns
