"""Whose state counts: terms, and the decision between this agent's state and its peer's.

A term is a number that an agent takes when its OpenSM becomes the master, above all terms that it
has heard of. So of two states the one of the higher term was made by the agent whose OpenSM became
the master later. Within a term only the agent that took it changes the state, and its generations
only grow.

An agent whose OpenSM is the master never takes its peer's state over: its own describes the tables
that it read back. Where the peer, a standby now, has a higher term all the same (both were masters,
each in its part of a split fabric), the master's agent takes a term above the peer's, and numbers
its next plan above all that the peer's OpenSM had in force: a plugin refuses lower numbers.
"""

from __future__ import annotations

import secrets
from enum import Enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sar_agent.util.owned_files import make_folder
from sar_agent.util.store import JsonStore
from sar_agent.util.text_files import disk_errors

LARGEST_NUMBER = 2**63 - 1
LARGEST_BELIEVED = 2**62
"""Largest number that is believed of a peer: there is room for terms and generations above it."""


class TermRecord(BaseModel):
    """What `standby.json` says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str = Field(default_factory=lambda: secrets.token_hex(8), pattern="^[0-9a-f]{16}$")
    """Names this agent."""
    term: int = Field(default=0, ge=0, le=LARGEST_NUMBER)
    """Of the state on this disk."""
    holder: str = ""
    """The node that took the term; empty where none was taken yet."""
    highest: int = Field(default=0, ge=0, le=LARGEST_NUMBER)
    """Highest generation that either OpenSM is known to have had."""
    copied_at: float = 0.0
    """Unix seconds at which the peer's state was copied last; 0 for never."""


class Claim(BaseModel):
    """What an agent says about its state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str = Field(pattern="^[0-9a-f]{16}$")
    name: str = Field(pattern=r"^[A-Za-z0-9._-]{0,255}$")
    """The machine's name, for sentences."""
    master: bool
    """Whether its OpenSM is the master, and this agent the one that installs."""
    term: int = Field(ge=0, le=LARGEST_BELIEVED)
    holder: str = Field(pattern="^([0-9a-f]{16})?$")
    generation: int = Field(ge=0, le=LARGEST_BELIEVED)
    """In its `state.json`; 0 where it has none."""
    highest: int = Field(ge=0, le=LARGEST_BELIEVED)
    decided: float
    """Unix seconds of the newest decision in its history; 0 where there is none."""


class Precedence(Enum):
    """What follows from two claims."""

    OWN = "own state counts"
    ADOPT = "the peer's state counts"
    RAISE = "the own state counts, and takes a higher term"
    REFUSE = "the peer's state is older than its term allows"


def precedence(own: Claim, peer: Claim) -> Precedence:
    """What an agent does about its peer's claim."""
    if own.master:
        newer = peer.term > own.term or (peer.term == own.term and peer.holder != own.holder)
        return Precedence.RAISE if newer and not peer.master else Precedence.OWN
    if peer.generation == 0:  # an agent without a state has nothing to give
        return Precedence.OWN
    if peer.term != own.term:
        return Precedence.ADOPT if peer.term > own.term else Precedence.OWN
    if not peer.holder and not own.holder:  # both are from before there were two
        return Precedence.ADOPT if peer.generation > own.generation else Precedence.OWN
    if peer.holder != own.holder:  # both took this term, apart from each other
        theirs = peer.master, peer.generation, peer.node
        ours = own.master, own.generation, own.node
        return Precedence.ADOPT if theirs > ours else Precedence.OWN
    if peer.holder != peer.node:  # a copy of this agent's own state
        return Precedence.OWN
    return Precedence.REFUSE if peer.generation < own.generation else Precedence.ADOPT


class TermStore(JsonStore[TermRecord]):
    """`standby.json` in `folder`; a node's name is made at the first use. Methods raise
    `InputError` where the disk does not give or take it."""

    def __init__(self, folder: Path) -> None:
        remedy = "remove it; the agent then takes its peer's state, which must be running"
        super().__init__(folder / "standby.json", TermRecord, remedy)

    def load(self, *, required: bool = True) -> TermRecord:
        """The record on disk, made where there is none."""
        if record := self.read():
            return record
        record = TermRecord()
        with disk_errors("cannot be created", self.path.parent):
            make_folder(self.path.parent)
        self.write(record)
        return record
