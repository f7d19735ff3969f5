"""The messages of `slurm_spank/PROTOCOL.md`, and the reasons to refuse one.

Limits are checked before work is done: first the length, before any parser sees the message; then
its event, which says which fields it has and how long it may be; then all of it is parsed, up to
the first error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from sar_agent.jobs.traffic import LONGEST, is_traffic

log = logging.getLogger(__name__)

LONGEST_PAYLOAD = 65536
"""Bytes of the longest message, a request for a routing key with pairs of ranks. `Message.longest`
is the limit of all others."""
CREDENTIAL = b"MUNGE:"
"""First bytes of a line that carries a credential."""
LONGEST_LINE = 98304
"""Bytes of a line: a payload, encoded by munge."""


class RefusalReason(StrEnum):
    """Why a message was refused; the values are labels of a metric."""

    GARBAGE = "garbage"
    OVERSIZE = "oversize"
    SLOW = "slow"
    CREDENTIAL = "credential"
    REPLAYED = "replayed"
    NOT_ALLOWED = "not_allowed"
    NOT_OWNER = "not_owner"
    FULL = "full"
    TOO_MANY = "too_many"
    TOO_OFTEN = "too_often"
    NO_MUNGE = "no_munge"


class MessageRefused(Exception):
    """A refused message; the text is a sentence for its sender and for the log."""

    def __init__(self, reason: RefusalReason, sentence: str) -> None:
        self.reason = reason
        super().__init__(sentence)


Tasks = Annotated[str, Field(pattern=r"^[0-9x(),]{1,1000}$")]
"""Tasks on each node, in the format of SLURM_TASKS_PER_NODE: `2(x3),1`."""


class Message(BaseModel):
    """The fields of all messages. An optional field is None if the sender does not know it."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    longest: ClassVar[int] = 4096
    """Largest number of bytes of the payload."""

    v: Literal[1]
    event: str
    job: Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
    user: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    at: FiniteFloat = 0.0
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]

    def delay(self) -> float:
        """Seconds since the message was sent, by the clocks of both machines; never negative."""
        return max(0.0, time.time() - self.at)


class Event(Message):
    """An event of Slurm's hooks: a job starts, ends, or declares its traffic."""

    event: Literal["start", "end", "hint"]
    nodes: str | None = None
    traffic: str | None = None
    tasks: Tasks | None = None

    @property
    def known_traffic(self) -> str | None:
        """The traffic pattern, if it is one that the agent knows; the SPANK plugin may be newer."""
        text = self.traffic
        if not text or text == "none":
            return None
        if is_traffic(text):
            return text
        _say_unknown(text[:LONGEST])
        return None


@lru_cache(maxsize=64)
def _say_unknown(word: str) -> None:
    """Once for a word, unless users make up many."""
    log.warning("traffic %r is not known here and counts as not given; is the SPANK plugin newer?",
                word)  # fmt: skip


MODELS: Mapping[str, type[Message]] = {"start": Event, "end": Event, "hint": Event}
"""The events of Slurm's hooks, by name; other handlers have tables of their own."""


class _Named(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    event: Annotated[str, Field(max_length=40)]


def parse(payload: bytes, models: Mapping[str, type[Message]] = MODELS) -> Message:
    """Parses a message as the model that `models` has for its event. Raises `MessageRefused`."""
    longest = _longest(payload, models)
    if len(payload) > longest:
        raise MessageRefused(RefusalReason.OVERSIZE, f"a message has at most {longest} bytes")
    try:
        model = models.get(_Named.model_validate_json(payload).event)
        longest = model.longest if model else Message.longest
        if len(payload) > longest + 1:
            raise MessageRefused(RefusalReason.OVERSIZE, f"a message has at most {longest} bytes")
        if model is None:
            known = ", ".join(models)
            raise MessageRefused(
                RefusalReason.GARBAGE,
                f"this is not a message of PROTOCOL.md: the events are {known}",
            )
        return model.model_validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the whole message"
        raise MessageRefused(
            RefusalReason.GARBAGE,
            f"this is not a message of PROTOCOL.md: {field}: {first['msg'][:200]}",
        ) from error


def _longest(payload: bytes, models: Mapping[str, type[Message]]) -> int:
    """Largest number of bytes of a message, as far as it is known without parsing: only a message
    that names an event of long messages may be long."""
    if len(payload) <= Message.longest:
        return Message.longest
    named = (model.longest for name, model in models.items() if f'"{name}"'.encode() in payload)
    return max((Message.longest, *named))
