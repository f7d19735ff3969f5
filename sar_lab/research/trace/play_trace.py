"""Simulates the programs of a trace on given routes: how long do they take?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.lid_offsets import KeyRows
from sar_agent.routing.routes import Routes
from sar_lab.fluid.flow_events import WAITS, FlowProgress, advance, progress_of
from sar_lab.fluid.flow_links import F64, FlowLinks
from sar_lab.fluid.flow_paths import reroute, routed_links
from sar_lab.fluid.flow_steps import Flows, flows_of_steps, seconds_alone
from sar_lab.fluid.path_routes import PathRoutes
from sar_lab.research.trace.adaptive import AdaptiveRouting, play_adaptive
from sar_lab.research.trace.program_trace import Program, ProgramTrace
from sar_lab.research.trace.rank_placement import Placement

GBIT = 8e-9
"""Gbit a byte."""
LINKS_MOST = 16
"""The most links of a key's path, with the hosts' own: enough for trees of eight levels."""


@dataclass(frozen=True, eq=False)
class PhaseRequest:
    """The request of a phase for its routing key, just before it sends."""

    job: str
    key: str
    source: I32
    """int32[N], terminals."""
    destination: I32
    """int32[N], terminals."""
    flows: I32
    """int32[C]: the flows that now run over each channel, without those of this phase."""


KeySource = Callable[[PhaseRequest], KeyRows | U8 | None]
"""Returns the rows of a key, whole tables (uint8[T + S, S]), or None for the default routes."""


@dataclass(frozen=True, eq=False)
class ProgramTime:
    """The times of one program with Q phases that send."""

    program: Program
    seconds: float
    """From the start to the end of the program, computation included."""
    begin: F64
    """float64[Q], seconds: when the messages of each phase start."""
    sending: F64
    """float64[Q], seconds: how long they take to arrive."""
    alone: F64
    """float64[Q], seconds: how long they would take if only the hosts' own links limited them."""
    barriers: float = 0.0
    """Seconds that the program spends in barriers, one before each of these phases."""

    @property
    def communication(self) -> float:
        """Seconds of messages and barriers."""
        return float(self.sending.sum()) + self.barriers

    def json(self) -> dict[str, Any]:
        """The times, and the slowdown of all communication (null for a program without
        messages)."""
        alone = float(self.alone.sum())
        return {
            "job": self.program.job,
            "ranks": self.program.ranks,
            "seconds": self.seconds,
            "communication": self.communication,
            "alone": alone,
            "slowdown": self.communication / alone if alone else None,
        }


def play_trace(
    fabric: Fabric,
    routes: Routes | PathRoutes | AdaptiveRouting,
    trace: ProgramTrace,
    placement: Placement,
    *,
    keys: KeySource | None = None,
    request_seconds: float = 0.0,
    round_seconds: float = 0.0,
) -> list[ProgramTime]:
    """Simulates all programs at the same time.

    `keys` answers each key request just before the phase sends; a request delays the phase by
    `request_seconds`. Only forwarding tables can hold keys. A barrier comes before each phase that
    sends; it has `barrier_rounds` rounds of `round_seconds`. Raises `CheckFailed` where a route
    does not reach its destination.
    """
    flows = flows_of(trace, placement, request_seconds if keys else 0.0, round_seconds)
    if isinstance(routes, AdaptiveRouting):
        progress = play_adaptive(fabric, flows, routes)
        return _times(fabric, trace, flows, progress, round_seconds)
    links = routed_links(fabric, routes, flows, room=LINKS_MOST if keys else 0)
    progress = progress_of(links, flows)
    if keys and isinstance(routes, Routes):
        progress.asks[:] = [phase.key is not None for _, phase in _sending(trace)]
        _play_keys(fabric, routes, trace, links, flows, progress, keys)
    else:
        advance(links, flows, progress, np.inf)
    return _times(fabric, trace, flows, progress, round_seconds)


def barrier_rounds(ranks: int) -> int:
    """The rounds of a dissemination barrier: in round k each rank sends to the one 2^k further on
    (Hensgen, Finkel and Manber, 1988); a single rank needs none."""
    return max(0, ranks - 1).bit_length()


def by_offset(routes: Routes, offset: Mapping[str, int]) -> KeySource:
    """Keys that are part of the tables, by the LID offset of each name. A key is looked up as
    `JOB/KEY`, then as `KEY`; a key without an offset uses offset 0."""
    for name, number in offset.items():
        if not 0 <= number < len(routes.egress):
            raise InputError(
                f"key {name!r} has LID offset {number}; the routes have {len(routes.egress)}",
                remedy=f"0 … {len(routes.egress) - 1}",
            )

    def tables(asked: PhaseRequest) -> U8 | None:
        number = offset.get(f"{asked.job}/{asked.key}", offset.get(asked.key))
        return None if number is None else routes.egress[number]

    return tables


def _sending(trace: ProgramTrace) -> list[tuple[int, Any]]:
    """(program, phase) of every step, in the order of the steps."""
    return [
        (number, phase)
        for number, program in enumerate(trace.programs)
        for phase in program.phases
        if len(phase.pairs)
    ]


def flows_of(
    trace: ProgramTrace, placement: Placement, request: float = 0.0, barrier_round: float = 0.0
) -> Flows:
    """The flows of all programs, with a step for each phase that sends. Each key request delays its
    phase by `request` seconds, each round of the barrier before it by `barrier_round`."""
    steps: list[I32] = []
    size: list[F64] = []
    job: list[int] = []
    last: list[bool] = []
    wait: list[float] = []
    for number, (program, terminal) in enumerate(zip(trace.programs, placement, strict=True)):
        pause, key = program.start, None
        for phase in program.phases:
            pause += phase.compute
            if not len(phase.pairs):
                continue
            pause += barrier_rounds(program.ranks) * barrier_round
            if phase.key is not None and phase.key != key:
                pause += request
            key = phase.key
            steps.append(terminal[phase.pairs])
            size.append(phase.size * GBIT)
            job.append(number)
            wait.append(pause)
            last.append(False)
            pause = 0.0
        if last:
            last[-1] = True
    sizes = np.concatenate([np.empty(0), *size])
    numbers = np.array(job, np.uint32)
    return flows_of_steps(steps, sizes, job=numbers, last=np.array(last, bool), wait=wait)


def _play_keys(
    fabric: Fabric,
    routes: Routes,
    trace: ProgramTrace,
    links: FlowLinks,
    flows: Flows,
    progress: FlowProgress,
    keys: KeySource,
) -> None:
    sending = _sending(trace)
    while True:
        what, step = advance(links, flows, progress, np.inf)
        if what != WAITS:
            return
        number, phase = sending[step]
        flows_of_step = np.arange(progress.first[step], progress.first[step + 1], dtype=np.uint32)
        program = trace.programs[number]
        answer = keys(
            PhaseRequest(
                program.job,
                phase.key,
                flows.source[flows_of_step].astype(np.int32),
                flows.destination[flows_of_step].astype(np.int32),
                links.users[: fabric.channels].astype(np.int32),
            )
        )
        if isinstance(answer, KeyRows):
            rows = answer
            answer = routes.egress[0].copy()
            answer[rows.destinations] = rows.egress
        if answer is not None:
            reroute(
                fabric, answer, links, flows, flows_of_step, f"key {phase.key} of job {program.job}"
            )
        progress.asks[step] = False


def _times(
    fabric: Fabric,
    trace: ProgramTrace,
    flows: Flows,
    progress: FlowProgress,
    round_seconds: float = 0.0,
) -> list[ProgramTime]:
    steps = len(flows.last)
    end = np.zeros(steps)
    np.maximum.at(end, flows.step, progress.end)
    alone = seconds_alone(fabric, flows, flows.step, steps)
    times = []
    step = 0
    for program in trace.programs:
        own = slice(step, step + sum(len(phase.pairs) > 0 for phase in program.phases))
        step = own.stop
        late = 0.0
        for phase in reversed(program.phases):
            if len(phase.pairs):
                break
            late += phase.compute
        over = end[step - 1] if own.start < own.stop else program.start
        begin = progress.begin[own]
        times.append(
            ProgramTime(
                program,
                float(over + late - program.start),
                begin,
                end[own] - begin,
                alone[own],
                barrier_rounds(program.ranks) * round_seconds * len(begin),
            )
        )
    return times
