"""What the ranks of an emulated job send: the demand's patterns as text for `ranks.c`.

Patterns are the words of `traffic.txt`, or their short names here. All patterns and jobs move the
same number of bytes through their busiest port, so times can be compared with the time that this
port alone would take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sar_agent.demand.collectives import AT_ONCE
from sar_agent.demand.declared import declared_phases
from sar_agent.demand.patterns import RankPhase, rank_phases, read_phases
from sar_agent.errors import InputError
from sar_agent.jobs.model import Job
from sar_agent.util.text_files import read_text

SHORT = {"at-once": AT_ONCE, "halo": "halo2d"}
STEPS = 16
"""Steps of a program at least: a pattern of few phases is gone through several times, as a ring
all-reduce does."""


class Program(NamedTuple):
    """What the ranks of one job do, `passes` times: steps that each rank ends before its next."""

    passes: int
    steps: tuple[dict[tuple[int, int], int], ...]
    """Of each step: bytes by (sending rank, receiving rank)."""


class Place(NamedTuple):
    """Where a rank listens."""

    address: str
    port: int


def program_of(job: Job, pattern: str, size: int) -> Program:
    """`size`: bytes through the busiest port, sent or received. Jobs that declare their traffic
    run that. Raises `InputError` for a pattern that does not fit the job."""
    word = SHORT.get(pattern, pattern)
    phases: Sequence[RankPhase]
    declared = declared_phases(job)
    if declared is not None:
        phases = declared
    elif Path(word).is_file():
        phases = read_phases(read_text(Path(word)), len(job.terminals), word)
    else:
        phases = [phase for phase in rank_phases(word, len(job.terminals)) if len(phase.source)]
    if not phases:
        raise InputError(
            f"in {pattern} no rank of job {job.id} sends anything", remedy="give another pattern"
        )
    shares = [_shares(phase) for phase in phases]
    passes = -(-STEPS // len(shares))
    if word == AT_ONCE and declared is None:
        together: dict[tuple[int, int], float] = defaultdict(float)
        for step in shares:
            for pair, share in step.items():
                together[pair] += share
        shares, passes = [together], 1
    sent: dict[int, float] = defaultdict(float)
    received: dict[int, float] = defaultdict(float)
    for step in shares:
        for (source, destination), share in step.items():
            sent[source] += share
            received[destination] += share
    unit = size / (passes * max(*sent.values(), *received.values()))
    steps = ({pair: max(1, round(share * unit)) for pair, share in s.items()} for s in shares)
    return Program(passes, tuple(steps))


def _shares(phase: RankPhase) -> dict[tuple[int, int], float]:
    shares: dict[tuple[int, int], float] = defaultdict(float)
    for pair in zip(phase.source.tolist(), phase.destination.tolist(), strict=True):
        shares[pair] += phase.weight
    return shares


def rank_texts(program: Program, places: Sequence[Place], limit: int) -> list[str]:
    """What each rank reads (the head of `ranks.c`); it ends by itself after `limit` seconds."""
    steps: list[list[str]] = [[] for _ in places]
    peers: list[set[int]] = [set() for _ in places]
    for step in program.steps:
        begun = set()
        for (source, destination), size in step.items():
            for rank, peer, way in ((destination, source, "in"), (source, destination, "out")):
                if rank not in begun:
                    begun.add(rank)
                    steps[rank].append("step")
                steps[rank].append(f"{way} {peer} {size}")
                peers[rank].add(peer)
    return [
        "\n".join(
            [
                f"rank {rank} {place.address} {place.port}",
                *(f"peer {p} {places[p].address} {places[p].port}" for p in sorted(peers[rank])),
                f"limit {limit}",
                f"passes {program.passes}",
                *steps[rank],
                "end\n",
            ]
        )
        for rank, place in enumerate(places)
    ]
