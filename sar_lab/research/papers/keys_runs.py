"""Applications with barriers under D-mod-k, a Conga-like peer, ARK and NRK (routing-keys-2017,
IV-C).

Each application steps through a Cartesian permutation, +x to -z in an order of its own, with a
barrier and computation between phases, on hosts drawn at random. ARK and NRK make one key for each
phase; NRK shifts it for the flows that run just before the phase sends. Key requests take no time,
as in the paper. The figures compare the time that the worst application spends sending.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options, load_engine
from sar_agent.routing.keys import KeyTree, key_tree
from sar_agent.routing.routes import Routes
from sar_lab.fluid.flow_paths import with_rates
from sar_lab.research.papers.measured import measured
from sar_lab.research.trace.adaptive import AdaptiveRouting
from sar_lab.research.trace.parse import read_trace
from sar_lab.research.trace.phase_keys import KINDS, phase_keys
from sar_lab.research.trace.play_trace import play_trace
from sar_lab.research.trace.program_generators import PROGRAMS, ProgramOptions
from sar_lab.research.trace.rank_placement import place_ranks

SMALL, LARGE = "xgft:3;6,6,6;1,6,6", "xgft:3;12,12,12;1,12,12"
RATE = 40.0
"""Gbit/s of all links."""
KILO = 2.0**10
MIXED = (4 * KILO, 256 * KILO)
"""Bytes of a message: powers of two, each as likely as another; the paper's distribution, after a
Facebook trace, is not printed."""
ENGINES = ("conga", "dmodk", "ark", "nrk")
AS_PRINTED = ("ark-printed", "ark-printed-drawn", "nrk-printed", "nrk-printed-links")
CONGA = AdaptiveRouting(flowlet=math.inf, feedback=160e-6)
"""CONGA's own time constant (Alizadeh et al., SIGCOMM 2014). Its flowlets end at gaps of 500 µs,
which a sender at full speed does not have, so a message is one flowlet."""
ROUND = 1.4e-6
"""Seconds of a round of a barrier, which is a small message. MPI on ConnectX took 1.4 to 1.9 µs for
one (J. Squyres, Open MPI's developer list, 2007, message 2158: MVAPICH, Open MPI). The shorter time
is taken, since costly barriers favour the paper's claims."""


@dataclass(frozen=True)
class Setup:
    """One point of a figure."""

    spec: str
    applications: int
    utilization: float
    """Share of the time in communication if no link were shared."""
    sizes: tuple[float, float] = MIXED
    iterations: int = 1
    round_seconds: float = ROUND
    """What a round of a barrier takes."""

    def worst(self, engine: str, seed: int, conga: AdaptiveRouting) -> float:
        """Seconds that the worst application spends sending and in barriers."""
        fabric, tree, routes = _network(self.spec)
        ranks = fabric.terminals // self.applications
        wish = ProgramOptions(
            ranks, self.applications, self.sizes, self.iterations, self.utilization, RATE, seed
        )
        trace = read_trace(PROGRAMS["cartesian"](wish))
        placement = place_ranks(fabric, trace, "random", seed)
        used = replace(conga, seed=seed) if engine == "conga" else routes
        keys = phase_keys(tree, engine) if engine in KINDS else None
        times = play_trace(
            fabric, used, trace, placement, keys=keys, round_seconds=self.round_seconds
        )
        return max(time.communication for time in times)


@measured
def worst_of(setup: Setup, engine: str, seeds: list[int], conga: AdaptiveRouting) -> list[float]:
    """`Setup.worst` of each seed."""
    return [setup.worst(engine, seed, conga) for seed in seeds]


@cache
def _network(spec: str) -> tuple[Fabric, KeyTree, Routes]:
    fabric = with_rates(xgft_fabric(spec), RATE, RATE)
    routes = load_engine("dmodk").route(fabric, JobMix(()), Options())
    return fabric, key_tree(fabric), routes
