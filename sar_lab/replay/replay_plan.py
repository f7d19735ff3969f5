"""A replay, divided into pieces that any process on any machine can compute in any order.

The division (`chunk` states in a piece, each engine separately) is part of the inputs and does not
depend on the number of workers, so the result is the same for one process, many, and a cluster.
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
"""The default number of states in a piece."""


@dataclass(frozen=True)
class ReplayPiece:
    """Consecutive states under one engine."""

    engine: str
    first: int
    end: int

    @property
    def name(self) -> str:
        """The name of the piece's file."""
        return f"{self.engine}-{self.first:08d}"


@dataclass(frozen=True, eq=False)
class ReplayPlan:
    """Everything that a worker needs to compute a piece."""

    fabric: Fabric
    samples: Samples
    engines: tuple[str, ...]
    objective: str = "load"
    chunk: int = CHUNK
    from_scratch: bool = False
    """Whether every state is a full computation."""

    def pieces(self) -> list[ReplayPiece]:
        """All pieces, in the order of the result."""
        return [
            ReplayPiece(engine, first, min(first + self.chunk, self.samples.states))
            for engine in self.engines
            for first in range(0, self.samples.states, self.chunk)
        ]

    def asked(self) -> dict[str, Any]:
        """The inputs that determine the result, as JSON: two replays with equal inputs have equal
        results, byte for byte."""
        state = hashlib.blake2b(digest_size=16)
        state.update(self.fabric.digest)
        state.update(self.samples.at.tobytes() + self.samples.state.tobytes())
        for running in self.samples.running:
            state.update(repr(running).encode())
        for parts in self.samples.parts:
            for part in parts:
                state.update(part.key)
        return {
            "engines": list(self.engines),
            "objective": self.objective,
            "chunk": self.chunk,
            "from_scratch": self.from_scratch,
            "sar_agent": __version__,
            "digest": state.hexdigest(),
        }

    def packed(self) -> bytes:
        """The plan as bytes for workers; `unpacked` reads them."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> ReplayPlan:
    """The plan from the bytes of `packed`, which must come from this program."""
    work = pickle.loads(data)
    assert isinstance(work, ReplayPlan)
    return work


def do_piece(work: ReplayPlan, piece: ReplayPiece) -> list[StateRow]:
    """Computes a piece; returns its rows."""
    lead = max(0, piece.first - 1)
    states = ((k, work.samples.mix(k)) for k in range(lead, piece.end))
    chain = replay_chain(
        work.fabric, piece.engine, work.objective, states, piece.first, work.from_scratch
    )
    return list(chain)
