"""From a line on a socket, or a file, to whom it concerns: decoded, read, believed, answered.

Families of events (`Family`) are a table: what they are called and who takes them. Slurm's hooks
are one (`JobEvents`), and the only one that may come by file, where nobody is answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sar_agent.events.authority import Authority
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import CREDENTIAL, MODELS, Event, Message, Refused, Why, parse
from sar_agent.events.tally import Tally

Decode = Callable[[bytes], tuple[int, bytes]]
STATUS = b"status"
"""Asked without a credential: the counters are no secret."""


class Family(Protocol):
    """Some events, and what becomes of them. Called from any thread."""

    @property
    def models(self) -> Mapping[str, type[Message]]:
        """By name of the event."""
        ...

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """What the answer says beside `ok`, quickly. Raises `Refused`, for the tally; an answer
        with an `ok` of its own is no refusal of the message."""
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


class Hearing:
    """`decode` is `Munge.decode`; a family in `others` takes what it has models for. Safe from any
    thread; nothing raises."""

    def __init__(
        self,
        decode: Decode,
        jobs: JobEvents,
        tally: Tally,
        others: Sequence[Family] = (),
        status: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`status` is what `sar-agent status` is told beside the counters."""
        self._status = status
        self.decode, self.jobs, self.tally = decode, jobs, tally
        self._families: dict[str, Family] = {}
        for family in (*others, jobs):
            self._families |= dict.fromkeys(family.models, family)
        self._models = {name: one.models[name] for name, one in self._families.items()}

    def line(self, line: bytes, way: str) -> bytes:
        """The answer to one line, without its line end."""
        if line == STATUS:
            waiting = len(self.jobs.inbox)
            counts = self.tally.counts()
            return _json({"ok": True, **counts, "waiting": waiting, **self._status()})
        try:
            if not line.startswith(CREDENTIAL) or b"\0" in line:
                raise Refused(Why.GARBAGE, "this is no munge credential")
            uid, payload = self.decode(line)
            message = parse(payload, self._models)
            answer = self._families[message.event].take(message, uid)
        except Refused as refused:
            return self.refuse(refused, way)
        self.tally.took(message, way)
        return _json({"ok": True, **answer})

    def file(self, payload: bytes, uid: int) -> bool:
        """What a file of `uid` says; False where it is refused."""
        try:
            message = parse(payload)
            self.jobs.take(message, uid)
        except Refused as refused:
            self.refuse(refused, "spool")
            return False
        self.tally.took(message, "spool")
        return True

    def refuse(self, refused: Refused, way: str) -> bytes:
        """Counted; returns the answer."""
        self.tally.refused(refused.why, str(refused), way)
        return _json({"ok": False, "error": str(refused)})


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
