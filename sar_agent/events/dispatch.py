"""Decodes a message from a socket, passes it to its handler, and returns the answer.

A handler (`MessageHandler`) declares the events that it takes. `JobEvents` handles those of Slurm's
hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sar_agent.events.answers import encode_answer
from sar_agent.events.authority import Authority
from sar_agent.events.counters import MessageCounters
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import (
    CREDENTIAL,
    MODELS,
    Event,
    Message,
    MessageRefused,
    RefusalReason,
    parse,
)
from sar_agent.events.rate import TokenBuckets

Decode = Callable[[bytes], tuple[int, bytes]]
STATUS = b"status"
"""The request for the counters, which needs no credential: they are not secret."""


class MessageHandler(Protocol):
    """Handles some events. Called from any thread."""

    @property
    def models(self) -> Mapping[str, type[Message]]:
        """The model of each event, by name."""

    def handle(self, message: Message, uid: int) -> Mapping[str, Any]:
        """Handles a message, quickly, and returns the fields of the answer beside `ok`. Raises
        `MessageRefused`, which is counted; an answer with an `ok` of its own is not a refusal."""


class JobEvents:
    """Handles the events of Slurm's hooks; `environment` is set for the tasks of every job."""

    models = MODELS

    def __init__(
        self,
        authority: Authority,
        inbox: Inbox,
        environment: Mapping[str, str],
        job_answer: Callable[[Event, int], Mapping[str, Any]] = lambda event, uid: {},
    ) -> None:
        """`job_answer` returns further fields of the answer about one job; its `env` is merged with
        `environment`."""
        self.authority, self.inbox, self.environment = authority, inbox, environment
        self.job_answer = job_answer

    def handle(self, message: Message, uid: int) -> Mapping[str, Any]:
        """Puts the event into the inbox if it is news."""
        assert isinstance(message, Event)
        self.authority.check_event(message, uid)
        if self.authority.is_news(message):
            self.inbox.add(message, uid)
        answer = self.job_answer(message, uid)
        if message.event == "start" and "wait" in answer:
            return answer  # without an environment, the job's steps ask for all of it
        env = {**self.environment, **answer.get("env", {})}
        return {**answer, "env": env} if env else answer


class Dispatcher:
    """Answers messages. Safe from any thread; its methods do not raise."""

    def __init__(
        self,
        decode: Decode,
        jobs: JobEvents,
        counters: MessageCounters,
        handlers: Sequence[MessageHandler] = (),
        status: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`decode` is `Munge.decode`. `handlers` take the messages that `jobs` does not. `status`
        returns what `sar-agent status` shows beside the counters."""
        self._status = status
        self.decode, self.jobs, self.counters = decode, jobs, counters
        self._handlers: dict[str, MessageHandler] = {}
        for handler in (*handlers, jobs):
            self._handlers |= dict.fromkeys(handler.models, handler)
        self._models = {event: taker.models[event] for event, taker in self._handlers.items()}
        counters.expect(self._models)
        self.rate = TokenBuckets()

    def answer(self, line: bytes, transport: str, peer: int | None = None) -> bytes:
        """The answer to one line, given without its line end. `peer` is the uid at the other end,
        if the kernel tells it; a line of a peer that has sent too much is not even decoded."""
        if line == STATUS:
            waiting = len(self.jobs.inbox)
            counts = self.counters.counts()
            return encode_answer({"status": {**counts, "waiting": waiting, **self._status()}})
        try:
            if not line.startswith(CREDENTIAL) or b"\0" in line:
                raise MessageRefused(RefusalReason.GARBAGE, "this is not a munge credential")
            if peer is not None and peer not in self.trusted and self.rate.spent(peer):
                raise _too_often(peer)
            uid, payload = self.decode(line)
            if uid not in self.trusted and not self.rate.allow(uid, len(payload)):
                raise _too_often(uid)
            message = parse(payload, self._models)
            answer = self._handlers[message.event].handle(message, uid)
        except MessageRefused as refused:
            return self.refuse(refused, transport)
        self.counters.accepted(message, transport)
        return encode_answer(answer)

    @property
    def trusted(self) -> frozenset[int]:
        """Uids that may report on all jobs, and for which there is always room."""
        return self.jobs.authority.trusted

    def refuse(self, refused: MessageRefused, transport: str) -> bytes:
        """Counts a refusal and returns the answer."""
        self.counters.refused(refused.reason, str(refused), transport)
        return encode_answer({"ok": False, "error": str(refused)})


def _too_often(uid: int) -> MessageRefused:
    return MessageRefused(RefusalReason.TOO_OFTEN, f"uid {uid} sends too much in too short a time")
