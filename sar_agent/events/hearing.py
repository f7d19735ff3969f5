"""From a line on a socket, or a file, to the inbox: decoded, read, believed, answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sar_agent.events.authority import Authority
from sar_agent.events.inbox import Inbox
from sar_agent.events.message import Event, Refused, Why, parse
from sar_agent.events.tally import Tally

Decode = Callable[[bytes], tuple[int, bytes]]
STATUS = b"status"
"""Asked without a credential: the counters are no secret."""


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
    ) -> None:
        self.decode, self.authority, self.inbox, self.tally = decode, authority, inbox, tally
        answer: dict[str, Any] = {"ok": True}
        self._ok = _json(answer | ({"env": dict(environment)} if environment else {}))

    def line(self, line: bytes, way: str) -> bytes:
        """The answer to one line, without its line end."""
        if line == STATUS:
            return _json({"ok": True, **self.tally.counts(), "waiting": len(self.inbox)})
        try:
            if not line.startswith(b"MUNGE:") or b"\0" in line:
                raise Refused(Why.GARBAGE, "this is no munge credential")
            uid, payload = self.decode(line)
            self._take(parse(payload), uid, way)
        except Refused as refused:
            return self.refuse(refused, way)
        return self._ok

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

    def _take(self, event: Event, uid: int, way: str) -> None:
        self.authority.check(event, uid)
        if self.authority.is_news(event):
            self.inbox.put(event, uid)
        self.tally.took(event, way)


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
