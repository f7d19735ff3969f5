"""The messages of `slurm_spank/PROTOCOL.md`, and why one is not taken."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from sar_agent.jobs.traffic import is_traffic

LONGEST_PAYLOAD = 65536
"""Of any message: a routing key's pairs of ranks. All others have `Message.longest`."""
CREDENTIAL = b"MUNGE:"
"""How a line begins that says who speaks."""
LONGEST_LINE = 98304


class Why(StrEnum):
    """Why a message was not taken; the values are labels of a metric."""

    GARBAGE = "garbage"
    OVERSIZE = "oversize"
    SLOW = "slow"
    CREDENTIAL = "credential"
    REPLAYED = "replayed"
    NOT_ALLOWED = "not_allowed"
    NOT_OWNER = "not_owner"
    FULL = "full"
    NO_MUNGE = "no_munge"


class Refused(Exception):
    """A message that is not taken; the text is a sentence for its sender and the log."""

    def __init__(self, why: Why, sentence: str) -> None:
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


class _Named(BaseModel):
    event: str


def parse(payload: bytes, models: Mapping[str, type[Message]] = MODELS) -> Message:
    """As the model that `models` has for its event. Raises `Refused`."""
    try:
        if len(payload) > LONGEST_PAYLOAD + 1:  # before a parser sees it
            raise Refused(Why.OVERSIZE, f"a message has at most {LONGEST_PAYLOAD} bytes")
        name = _Named.model_validate_json(payload).event
        model = models.get(name)
        longest = model.longest if model else Message.longest
        if len(payload) > longest + 1:  # a spooled one ends with a line end
            raise Refused(Why.OVERSIZE, f"a message has at most {longest} bytes")
        if model is None:
            known = ", ".join(models)
            raise Refused(
                Why.GARBAGE, f"this is no message of PROTOCOL.md: there are events {known}"
            )
        return model.model_validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise Refused(
            Why.GARBAGE, f"this is no message of PROTOCOL.md: {place}: {first['msg'][:200]}"
        ) from error
