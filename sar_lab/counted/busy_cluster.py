"""A busy cluster of made-up programs: few send all the time, many compute most of it, and storage
is written to by hosts of any job, which no queue tells of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job, make_job
from sar_lab.trace.play_trace import GBIT
from sar_lab.trace.program_trace import Program, ProgramPhase, ProgramTrace, make_phase
from sar_lab.trace.rank_placement import Placement

SIZES = (8, 12, 16, 24, 32)
"""Hosts of a job."""
RUN = 4
"""Hosts that a job gets side by side: a busy scheduler has few larger gaps."""
SECONDS = 0.01
"""Of a program, on a network without contention."""
SENDERS = 0.25
"""Share of the hosts that are in jobs which send all the time."""
CLIENTS = 16
"""Hosts that write to a storage host at a time."""
EVERY = 3
"""One leaf switch in so many has a storage host."""


@dataclass(frozen=True, eq=False)
class BusyCluster:
    """The jobs, which Slurm knows, and all programs, those of the jobs first."""

    mix: JobMix
    trace: ProgramTrace
    placement: Placement
    senders: tuple[bool, ...]
    """By job: whether it sends all the time."""


def busy_cluster(fabric: Fabric, seed: int) -> BusyCluster:
    """Deterministic for a seed."""
    random = np.random.default_rng(seed)
    storage = np.array(
        [
            int(np.flatnonzero(fabric.terminal_switch == leaf)[-1])
            for leaf in np.unique(fabric.terminal_switch)[::EVERY]
        ],
        np.int32,
    )
    compute = np.setdiff1d(np.arange(fabric.terminals, dtype=np.int32), storage)
    hosts = _in_runs(compute, random)
    rate = float(fabric.terminal_rate[0])
    jobs: list[Job] = []
    programs: list[Program] = []
    placement: Placement = []
    senders: list[bool] = []
    place = sending = 0
    while place + SIZES[-1] <= len(hosts):
        size = int(random.choice(SIZES))
        terminals = np.sort(hosts[place : place + size])
        sends = sending < SENDERS * len(hosts)
        sending += size * sends
        place += size
        job = str(len(jobs) + 1)
        jobs.append(make_job(job, terminals.tolist()))
        placement.append(random.permutation(terminals).astype(np.int32))
        programs.append(_program(job, size, sends, rate, random))
        senders.append(bool(sends))
    for number, host in enumerate(storage.tolist()):
        clients = random.choice(hosts[:place], CLIENTS, replace=False)
        placement.append(np.concatenate([[host], clients]).astype(np.int32))
        programs.append(_storage(f"storage{number}", rate, random))
    # `JobMix.of` would sort; programs and jobs keep one order.
    return BusyCluster(
        JobMix(tuple(jobs)),
        ProgramTrace(f"busy cluster {seed}", tuple(programs)),
        placement,
        tuple(senders),
    )


def _in_runs(compute: I32, random: np.random.Generator) -> I32:
    runs = [compute[i : i + RUN] for i in range(0, len(compute), RUN)]
    return np.concatenate([runs[i] for i in random.permutation(len(runs))])


def _program(
    job: str, ranks: int, sends: bool, rate: float, random: np.random.Generator
) -> Program:
    """An all-to-all after each piece of computation; of programs that seldom send, half shift by
    one rank instead."""
    share = 0.95 if sends else float(random.uniform(0.03, 0.12))
    count = 12 if sends else 6
    sending, computing = SECONDS * share / count, SECONDS * (1 - share) / count
    shifts = not sends and bool(random.integers(2))
    rank = np.arange(ranks, dtype=np.int32)
    to = [1] if shifts else range(1, ranks)
    pairs = np.concatenate([np.stack([rank, (rank + k) % ranks], axis=1) for k in to])
    size = sending * rate / GBIT / len(to)
    phase = make_phase(pairs.astype(np.int32), size, compute=computing)
    return Program(job, ranks, float(random.uniform(0, SECONDS / 6)), (phase,) * count)


def _storage(name: str, rate: float, random: np.random.Generator) -> Program:
    """Bursts that keep the storage host's port busy for two thirds of the time, while jobs run."""
    burst = SECONDS / 10
    pairs = np.array([[client, 0] for client in range(1, CLIENTS + 1)], np.int32)
    phases: list[ProgramPhase] = []
    for _ in range(10):
        pause = float(random.exponential(burst / 2))
        phases.append(make_phase(pairs, burst * rate / GBIT / CLIENTS, compute=pause))
    return Program(name, CLIENTS + 1, 0.0, tuple(phases))


def sent_shares(fabric: Fabric, cluster: BusyCluster, seconds: F64) -> dict[str, float]:
    """What each job's ports sent while it ran (`seconds`, by job), as a share of their speed: what
    the agent counts as the job's weight. The ports' writes to storage count, too."""
    sent = np.zeros(fabric.terminals)
    for program, terminal in zip(cluster.trace.programs, cluster.placement, strict=True):
        for phase in program.phases:
            np.add.at(sent, terminal[phase.pairs[:, 0]], phase.size * GBIT)
    shares = {}
    for job, length in zip(cluster.mix.jobs, seconds.tolist(), strict=True):
        room = fabric.terminal_rate[job.terminals] * length
        shares[job.id] = float(np.minimum(1.0, sent[job.terminals] / room).mean())
    return shares
