"""A replay cut into pieces that any process on any machine can do, in any order.

How it is cut (`chunk` states a piece, each engine by itself) is part of what is asked for, never of
how many workers there are; so the result is the same for one process, for many, and on a cluster.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import Any

from sar_agent import __version__
from sar_agent.fabric import Fabric
from sar_lab.replay.chain import StateRow, replay_chain
from sar_lab.replay.samples import Samples

CHUNK = 64
"""States a piece, where nobody asks for another number."""


@dataclass(frozen=True)
class ReplayPiece:
    """Some consecutive states under one engine."""

    engine: str
    first: int
    end: int

    @property
    def name(self) -> str:
        """Names its file."""
        return f"{self.engine}-{self.first:08d}"


@dataclass(frozen=True, eq=False)
class ReplayPlan:
    """Everything a worker needs."""

    fabric: Fabric
    samples: Samples
    engines: tuple[str, ...]
    objective: str = "load"
    chunk: int = CHUNK
    anew: bool = False
    """Every state is a full computation."""

    def pieces(self) -> list[ReplayPiece]:
        """All of them, in the order of the result."""
        return [
            ReplayPiece(engine, first, min(first + self.chunk, self.samples.states))
            for engine in self.engines
            for first in range(0, self.samples.states, self.chunk)
        ]

    def asked(self) -> dict[str, Any]:
        """What decides the result, as JSON: two replays that agree in it agree in every byte."""
        state = hashlib.blake2b(digest_size=16)
        state.update(self.fabric.digest)
        state.update(self.samples.at.tobytes() + self.samples.state.tobytes())
        for running in self.samples.running:
            state.update(repr(running).encode())
        for job in self.samples.jobs:
            state.update(job.key)
        return {
            "engines": list(self.engines),
            "objective": self.objective,
            "chunk": self.chunk,
            "anew": self.anew,
            "sar_agent": __version__,
            "digest": state.hexdigest(),
        }

    def packed(self) -> bytes:
        """To be sent to workers; see `unpacked`."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> ReplayPlan:
    """What `packed` made; only ever of our own bytes."""
    work = pickle.loads(data)
    assert isinstance(work, ReplayPlan)
    return work


def do_piece(work: ReplayPlan, piece: ReplayPiece) -> list[StateRow]:
    """Its rows."""
    lead = max(0, piece.first - 1)
    states = ((k, work.samples.mix(k)) for k in range(lead, piece.end))
    chain = replay_chain(work.fabric, piece.engine, work.objective, states, piece.first, work.anew)
    return list(chain)
