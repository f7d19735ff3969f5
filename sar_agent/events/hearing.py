"""From a line on a socket, or a file, to the inbox: decoded, read, believed, answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from sar_agent.events.authority import Authority
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import JOB_EVENTS, Event, Message, Models, Refused, Why, parse
from sar_agent.events.tally import Tally

Decode = Callable[[bytes], tuple[int, bytes]]
STATUS = b"status"
"""Asked without a credential: the counters are no secret."""


class Handler(Protocol):
    """A family of events beside those of jobs, on streams only, since all of them want an answer.
    Called from any thread."""

    @property
    def models(self) -> Models:
        """What it takes."""

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """What the answer says besides `ok`. `uid` speaks, and the job is known to be no other
        user's. Raises `Refused`."""

    def status(self) -> Mapping[str, Any]:
        """For `sar-agent status`, under keys of its own."""


class Hearing:
    """`decode` is `Munge.decode`; `environment` is what the tasks of every job are given. Safe
    from any thread; nothing raises."""

    def __init__(
        self,
        decode: Decode,
        authority: Authority,
        inbox: Inbox,
        tally: Tally,
        environment: Mapping[str, str],
        handlers: Iterable[Handler] = (),
    ) -> None:
        self.decode, self.authority, self.inbox, self.tally = decode, authority, inbox, tally
        self._handlers = tuple(handlers)
        self._handler_of = {name: one for one in self._handlers for name in one.models}
        self._models: Models = dict(JOB_EVENTS)
        for one in self._handlers:
            self._models = {**self._models, **one.models}
        answer: dict[str, Any] = {"ok": True}
        self._ok = _json(answer | ({"env": dict(environment)} if environment else {}))

    def line(self, line: bytes, way: str) -> bytes:
        """The answer to one line, without its line end."""
        if line == STATUS:
            more = {k: v for one in self._handlers for k, v in one.status().items()}
            counts = self.tally.counts()
            return _json({"ok": True, **counts, "waiting": len(self.inbox), **more})
        try:
            if not line.startswith(b"MUNGE:") or b"\0" in line:
                raise Refused(Why.GARBAGE, "this is no munge credential")
            uid, payload = self.decode(line)
            return self._take(parse(payload, self._models), uid, way)
        except Refused as refused:
            return self.refuse(refused, way)

    def file(self, payload: bytes, uid: int) -> bool:
        """What a file of `uid` says; False where it is refused."""
        try:
            self._take(parse(payload), uid, "spool")
        except Refused as refused:
            self.refuse(refused, "spool")
            return False
        return True

    def refuse(self, refused: Refused, way: str) -> bytes:
        """Counted; returns the answer."""
        self.tally.refused(refused.why, str(refused), way)
        return _json({"ok": False, "error": str(refused)})

    def _take(self, message: Message, uid: int, way: str) -> bytes:
        self.authority.check(message, uid)
        answer = self._ok
        if isinstance(message, Event):
            if self.authority.is_news(message):
                self.inbox.put(message, uid)
        else:
            answer = _json({"ok": True, **self._handler_of[message.event].take(message, uid)})
        self.tally.took(message, way)
        return answer


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
