"""The messages of `slurm_spank/PROTOCOL.md`, and why one is not taken.

Bounds come before work: a message is read in three steps, each dearer than the one before. Its
length is looked at before a parser sees it; then its head (event, job) is read, by which quotas are
asked; then all of it, until the first error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from sar_agent.jobs.traffic import is_traffic

LONGEST_PAYLOAD = 65536
"""Of any message: a routing key's pairs of ranks. All others have `Message.longest`."""
CREDENTIAL = b"MUNGE:"
"""How a line begins that says who speaks."""
LONGEST_LINE = 98304


class RefusalReason(StrEnum):
    """Why a message was not taken; the values are labels of a metric."""

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
    """A message that is not taken; the text is a sentence for its sender and the log."""

    def __init__(self, why: RefusalReason, sentence: str) -> None:
        self.why = why
        super().__init__(sentence)


Tasks = Annotated[str, Field(pattern=r"^[0-9x(),]{1,1000}$")]
"""Tasks of each node, as SLURM_TASKS_PER_NODE has them: `2(x3),1`."""


class Message(BaseModel):
    """What all messages have. What is optional in one is None where the sender did not know it."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    longest: ClassVar[int] = 4096
    """Bytes of the payload."""

    v: Literal[1]
    event: str
    job: Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
    user: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    at: FiniteFloat = 0.0
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]

    def delay(self) -> float:
        """Seconds since it was sent, by the clocks of both ends; never negative."""
        return max(0.0, time.time() - self.at)


class Event(Message):
    """Of Slurm's hooks: a job starts, ends, or says what its traffic is."""

    event: Literal["start", "end", "hint"]
    nodes: str | None = None
    traffic: str | None = None
    tasks: Tasks | None = None

    @property
    def known_traffic(self) -> str | None:
        """The pattern, if it says anything. One that is not in our table says nothing: the plugin
        may be newer than the agent."""
        text = self.traffic
        return text if text and text != "none" and is_traffic(text) else None


MODELS: Mapping[str, type[Message]] = {"start": Event, "end": Event, "hint": Event}
"""Of Slurm's hooks, by the name of the event; other families of events have tables of their own."""


class MessageHead(BaseModel):
    """What quotas are asked by, before the rest is read."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    event: Annotated[str, Field(max_length=40)]
    job: Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]


def parse(
    payload: bytes,
    models: Mapping[str, type[Message]] = MODELS,
    admit: Callable[[MessageHead], None] = lambda head: None,
) -> Message:
    """As the model that `models` has for its event. `admit` may raise `MessageRefused` by the head,
    before
    the rest is read. Raises `MessageRefused`."""
    longest = _longest(payload, models)
    if len(payload) > longest + 1:  # a spooled one ends with a line end
        raise MessageRefused(RefusalReason.OVERSIZE, f"a message has at most {longest} bytes")
    try:
        head = MessageHead.model_validate_json(payload)
        model = models.get(head.event)
        longest = model.longest if model else Message.longest
        if len(payload) > longest + 1:
            raise MessageRefused(RefusalReason.OVERSIZE, f"a message has at most {longest} bytes")
        if model is None:
            known = ", ".join(models)
            raise MessageRefused(
                RefusalReason.GARBAGE,
                f"this is no message of PROTOCOL.md: there are events {known}",
            )
        admit(head)
        return model.model_validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise MessageRefused(
            RefusalReason.GARBAGE,
            f"this is no message of PROTOCOL.md: {place}: {first['msg'][:200]}",
        ) from error


def _longest(payload: bytes, models: Mapping[str, type[Message]]) -> int:
    """Bytes that a message may have, as far as can be said without reading it: only one that names
    an event of long messages may be long."""
    named = (one.longest for name, one in models.items() if f'"{name}"'.encode() in payload)
    usual = len(payload) <= Message.longest
    return Message.longest if usual else max((Message.longest, *named))
