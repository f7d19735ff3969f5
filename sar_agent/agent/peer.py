"""What is known of the other machine's agent, where two OpenSMs serve a fabric (docs/ha.md).

`peer.json` is written by `sar-agent send-state`, which a unit of its own runs. The agent numbers
its plans above all that the other one has made: while a fabric was in two parts, that may have gone
further, and neither its OpenSM's plugin nor its agent takes a lower number.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sar_agent.util.store import JsonStore


class PeerRecord(BaseModel):
    """The answer of the other machine to the last archive that it was sent."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    host: str = ""
    generation: int = Field(default=0, ge=0, le=2**62)
    """Highest generation that it is known to have had."""
    edition: int = Field(default=0, ge=0, le=2**62)
    same_at: float = 0.0
    """Unix seconds at which it last had this agent's state; 0 for never."""
    problem: str = ""
    """Why it does not have it now; empty where it does."""


class PeerStore(JsonStore[PeerRecord]):
    """`peer.json` in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "peer.json", PeerRecord, "it is made again")


def peer_generation(folder: Path) -> int:
    """Highest generation that the other machine's agent is known to have had; 0 where there is
    none. `folder` is the state folder."""
    record = PeerStore(folder).load()
    return record.generation if record else 0
