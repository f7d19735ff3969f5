"""From a line on a socket, or a file, to whom it concerns: decoded, read, believed, answered.

Families of events (`MessageHandler`) are a table: what they are called and who takes them. Slurm's
hooks
are one (`JobEvents`), and the only one that may come by file, where nobody is answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from sar_agent.events.authority import Authority
from sar_agent.events.counters import MessageCounters
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import (
    CREDENTIAL,
    MODELS,
    Event,
    Message,
    MessageHead,
    MessageRefused,
    RefusalReason,
    parse,
)
from sar_agent.events.quota import TokenBuckets

Decode = Callable[[bytes], tuple[int, bytes]]
STATUS = b"status"
"""Asked without a credential: the counters are no secret."""


class MessageHandler(Protocol):
    """Some events, and what becomes of them. Called from any thread."""

    @property
    def models(self) -> Mapping[str, type[Message]]:
        """By name of the event."""
        ...

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """What the answer says beside `ok`, quickly. Raises `MessageRefused`, for the tally; an
        answer
        with an `ok` of its own is no refusal of the message."""
        ...


@runtime_checkable
class BoundedHandler(Protocol):
    """A family that can refuse a message before all of it is read."""

    def admit(self, head: MessageHead, uid: int) -> None:
        """Raises `MessageRefused` where there is no room for it."""
        ...


class JobEvents:
    """What Slurm's hooks tell; `environment` is what the tasks of a job are given."""

    models = MODELS

    def __init__(
        self,
        authority: Authority,
        inbox: Inbox,
        environment: Mapping[str, str],
        more: Callable[[Event, int], Mapping[str, Any]] = lambda event, uid: {},
    ) -> None:
        """`more` may add to the answer of one job; its `env` is merged with `environment`."""
        self.authority, self.inbox, self.environment = authority, inbox, environment
        self.more = more

    def admit(self, head: MessageHead, uid: int) -> None:
        """Whom only root may tell of is known by the head. Raises `MessageRefused`."""
        self.authority.may_tell(head.event, uid)

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """To the inbox, if it is news."""
        assert isinstance(message, Event)
        self.authority.check(message, uid)
        if self.authority.is_news(message):
            self.inbox.put(message, uid)
        more = self.more(message, uid)
        if message.event == "start" and "wait" in more:
            return more  # an empty environment makes the job's steps ask for the whole of it
        env = {**self.environment, **more.get("env", {})}
        return {**more, "env": env} if env else more


class Dispatcher:
    """`decode` is `Munge.decode`; a family in `others` takes what it has models for. Safe from any
    thread; nothing raises."""

    def __init__(
        self,
        decode: Decode,
        jobs: JobEvents,
        tally: MessageCounters,
        others: Sequence[MessageHandler] = (),
        status: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`status` is what `sar-agent status` is told beside the counters."""
        self._status = status
        self.decode, self.jobs, self.tally = decode, jobs, tally
        self._families: dict[str, MessageHandler] = {}
        for family in (*others, jobs):
            self._families |= dict.fromkeys(family.models, family)
        self._models = {name: one.models[name] for name, one in self._families.items()}
        self.rate = TokenBuckets()

    def line(self, line: bytes, way: str, peer: int | None = None) -> bytes:
        """The answer to one line, without its line end. `peer`: the uid at the other end, where the
        kernel tells it; one that has spoken too often is not decoded."""
        if line == STATUS:
            waiting = len(self.jobs.inbox)
            counts = self.tally.counts()
            return _json({"ok": True, **counts, "waiting": waiting, **self._status()})
        try:
            if not line.startswith(CREDENTIAL) or b"\0" in line:
                raise MessageRefused(RefusalReason.GARBAGE, "this is no munge credential")
            if peer is not None and peer not in self.trusted and self.rate.spent(peer):
                raise _too_often(peer)
            uid, payload = self.decode(line)
            message = self._parse(payload, uid, self._models)
            answer = self._families[message.event].take(message, uid)
        except MessageRefused as refused:
            return self.refuse(refused, way)
        self.tally.took(message, way)
        return _json({"ok": True, **answer})

    @property
    def trusted(self) -> frozenset[int]:
        """Uids that are believed whatever they tell of, and for whom there is always room."""
        return self.jobs.authority.trusted

    def file(self, payload: bytes, uid: int, *, certain: bool = True) -> bool:
        """What a file of `uid` says; False where it is refused. Where it is not `certain` that this
        user left it there, it is worth a look at the queue and no more."""
        try:
            message = self._parse(payload, uid, MODELS)
            assert isinstance(message, Event)
            if not certain and uid in self.trusted:
                message = message.model_copy(update={"traffic": None})
            self.jobs.take(message, uid)
        except MessageRefused as refused:
            self.refuse(refused, "spool")
            return False
        self.tally.took(message, "spool")
        return True

    def _parse(self, payload: bytes, uid: int, models: Mapping[str, type[Message]]) -> Message:
        if uid not in self.trusted and not self.rate.take(uid, len(payload)):
            raise _too_often(uid)

        def admit(head: MessageHead) -> None:
            family = self._families[head.event]
            if isinstance(family, BoundedHandler):
                family.admit(head, uid)

        return parse(payload, models, admit)

    def refuse(self, refused: MessageRefused, way: str) -> bytes:
        """Counted; returns the answer."""
        self.tally.refused(refused.why, str(refused), way)
        return _json({"ok": False, "error": str(refused)})


def _too_often(uid: int) -> MessageRefused:
    return MessageRefused(RefusalReason.TOO_OFTEN, f"uid {uid} says too much in too short a time")


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
