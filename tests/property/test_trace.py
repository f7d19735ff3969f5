"""Programs on given routes: against exact arithmetic, by hand, and what must hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.keys import key_tree
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.research.trace.parse import read_trace
from sar_lab.research.trace.phase_keys import phase_keys
from sar_lab.research.trace.play_trace import ProgramTime, flows_of, play_trace
from sar_lab.research.trace.program_generators import PROGRAMS, ProgramOptions
from sar_lab.research.trace.program_trace import Program, ProgramTrace, make_phase
from sar_lab.research.trace.rank_placement import place_ranks
from tests.examples import examples
from tests.worlds.slow_fluid import end_times_slowly

NOBODY = JobMix.of([])
TREE = "xgft:2;4,4;1,4"


def routes_of(spec: str, engine: str) -> Routes:
    return load_engine(engine).route(xgft_fabric(spec), NOBODY, Options())


@st.composite
def traces(draw: st.DrawFn) -> ProgramTrace:
    """1-3 programs of 2-5 ranks, phases that send, compute, or do neither."""
    programs = []
    for job in range(draw(st.integers(1, 3))):
        ranks = draw(st.integers(2, 5))
        phases = []
        for _ in range(draw(st.integers(0, 4))):
            rank = st.integers(0, ranks - 1)
            pairs = draw(st.lists(st.tuples(rank, rank), max_size=5))
            sizes = draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs)))
            phases.append(
                make_phase(
                    np.array(pairs, np.int32).reshape(-1, 2),
                    np.array(sizes) * 1.25e8,  # whole Gbit
                    compute=float(draw(st.integers(0, 2))),
                    key=draw(st.sampled_from([None, "a", "b"])),
                )
            )
        programs.append(Program(str(job), ranks, float(draw(st.integers(0, 2))), tuple(phases)))
    return ProgramTrace("drawn", tuple(programs))


@examples(80)
@given(trace=traces(), seed=st.integers(0, 5))
def test_times_are_those_of_exact_arithmetic(trace: ProgramTrace, seed: int) -> None:
    fabric = xgft_fabric(TREE)
    routes = routes_of(TREE, "dmodk")
    placement = place_ranks(fabric, trace, "random", seed)
    flows = flows_of(trace, placement, 0.0)
    slow = [float(t) for t in end_times_slowly(routed_links(fabric, routes, flows), flows)]
    times = play_trace(fabric, routes, trace, placement)
    step = 0
    for each, program, terminals in zip(times, trace.programs, placement, strict=True):
        now, own = program.start, 0
        for phase in program.phases:
            now += phase.compute
            if not len(phase.pairs):
                continue
            end = max(t for t, s in zip(slow, flows.step, strict=True) if s == step)
            volume = np.zeros((2, fabric.terminals))
            for side in (0, 1):
                np.add.at(volume[side], terminals[phase.pairs[:, side]], phase.size)
            alone = volume.max() * 8e-9 / float(fabric.terminal_rate[0])
            assert each.begin[own] == pytest.approx(now)
            assert each.sending[own] == pytest.approx(end - now)
            assert each.alone[own] == pytest.approx(alone)
            assert each.sending[own] >= alone * (1 - 1e-9)
            now, own, step = end, own + 1, step + 1
        assert own == len(each.begin)
        assert each.seconds == pytest.approx(now - program.start)


CROSS = "trace 1\njob A 4\n{}send 0 2 1MB\nsend 1 3 1MB\nbarrier\n{}send 0 2 1MB\nsend 1 3 1MB\n"
"""Two pairs from one leaf to the other of `xgft:2;2,2;1,2`, in two phases."""


def two(ask: str = "", done: str = "") -> tuple[ProgramTrace, list[np.ndarray]]:
    trace = read_trace(CROSS.format(ask, done))
    return trace, place_ranks(xgft_fabric("xgft:2;2,2;1,2"), trace, "linear")


def slowdown(times: list[ProgramTime]) -> float:
    return float(times[0].json()["slowdown"])


def test_routing_keys_keep_a_job_to_itself_and_nrk_others_out() -> None:
    """On a full tree each phase is a permutation: one job alone is never slowed down. Of several,
    at different phases, NRK's share less than ARK's, which know nothing of each other."""
    fabric = xgft_fabric("xgft:3;4,4,4;1,4,4")
    routes, tree = load_engine("dmodk").route(fabric, NOBODY, Options()), key_tree(fabric)

    def worst(jobs: int, how: str) -> float:
        wish = ProgramOptions(
            ranks=64 // jobs, jobs=jobs, sizes=(2**16, 2**18), iterations=4, seed=5
        )
        trace = read_trace(PROGRAMS["cartesian"](wish))
        keys = phase_keys(tree, how) if how else None
        return max(
            slowdown([time])
            for time in play_trace(
                fabric, routes, trace, place_ranks(fabric, trace, "random", 2), keys=keys
            )
        )

    assert worst(1, "ark") == pytest.approx(1) and worst(1, "nrk") == pytest.approx(1)
    assert worst(1, "") > 1.5
    assert 1 <= worst(4, "nrk") < min(worst(4, "ark"), worst(4, ""))
