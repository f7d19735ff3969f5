"""Traffic patterns of jobs: a pattern turns a mix into flows.

In all patterns every ordered pair of a job's terminals exchanges the same amount of data, such that
the job would take 1 second if only its own slowest port limited it (`port_demand`). Times are
therefore multiples of the time on a network without contention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sar_agent.demand.rank_order import ranks_of
from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs import JobMix
from sar_lab.fluid.flow_steps import Flows, flows_of_steps

Pattern = Callable[[Fabric, JobMix], Flows]


def all_to_all(fabric: Fabric, mix: JobMix) -> Flows:
    """Every terminal of a job sends to all others at once."""
    return _flows(fabric, mix, lambda pairs: [[pairs]])


def shift(fabric: Fabric, mix: JobMix) -> Flows:
    """N - 1 phases: in phase k, rank i sends to rank i + k mod N; the next phase starts when all
    ranks have finished. Ranks are those of `demand/rank_order.py`."""
    return _flows(fabric, mix, lambda pairs: [list(pairs)])


def free_shift(fabric: Fabric, mix: JobMix) -> Flows:
    """`shift` without barriers: a rank starts its next message when its last one has arrived."""
    return _flows(fabric, mix, lambda pairs: list(pairs.transpose(1, 0, 2)))


PATTERNS: dict[str, Pattern] = {
    "alltoall": all_to_all,
    "shift": shift,
    "shift-free": free_shift,
}


def _flows(fabric: Fabric, mix: JobMix, order: Callable[[I32], Sequence[Sequence[I32]]]) -> Flows:
    """`order` gets one job's int32[N - 1, N, 2] (phase, rank, source and destination) and returns
    its sequences of steps, each int32[…, 2]."""
    size = np.diff(mix.offset)
    demand = port_demand(fabric, mix) / (size - 1)
    steps: list[I32] = []
    job: list[int] = []
    last: list[bool] = []
    of_jobs = np.split(ranks_of(fabric, mix), mix.offset[1:-1]) if mix.jobs else ()
    for number, ranks in enumerate(of_jobs):
        to = [np.roll(ranks, -k) for k in range(1, len(ranks))]
        both = np.stack(np.broadcast_arrays(ranks, np.stack(to)), axis=-1)
        for sequence in order(both):
            steps += [step.reshape(-1, 2) for step in sequence]
            job += [number] * len(sequence)
            last += [False] * (len(sequence) - 1) + [True]
    size_of = np.repeat(demand, size * (size - 1))
    return flows_of_steps(steps, size_of, job=np.array(job, np.uint32), last=np.array(last, bool))
