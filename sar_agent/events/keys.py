"""The desk where routing keys are asked for: the RODRequest and RODDone of routing-keys-2017, III.

Requests are only noted here, in the door's threads; the agent's loop serves them (`agent/keys/`)
and puts down what came of it. So nobody waits on a connection: a client that hears `waiting` asks
again with the same words, which is also how a lease is renewed. Answers that are no key are kept a
few seconds, since every node of a job may ask.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from sar_agent.events.authority import Authority
from sar_agent.events.message import Event, Message, Refused, Tasks, Why

MOST = 4096
"""Requests that may wait."""
KEPT = 10.0
"""Seconds for which an answer that is no key is given again."""
WHOLE_JOB = "job"
"""The phase of a key that `--sar-traffic` asks for."""
NODES_A_SECOND = 500
"""Of one job, that may ask again: a door hears some 1,000 messages a second."""

_Phase = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:+-]{1,63}$")]
_Rank = Annotated[int, Field(ge=0, lt=2**20)]


class KeyRequest(Message):
    """I shall send like this; lead me where nobody is in the way."""

    longest: ClassVar[int] = 65536

    event: Literal["key"]
    phase: _Phase
    traffic: str | None = None
    """A pattern by name."""
    pairs: list[_Rank] | None = None
    """Or its ranks: from, to, from, to, …"""
    nodes: str | None = None
    """Host list of those the ranks are on; None: all of the job's."""
    tasks: Tasks | None = None
    """None: one a node."""
    lease: Annotated[float, Field(gt=0)] | None = None
    """Seconds; None: as long as the site gives."""

    @property
    def wish(self) -> Wish:
        """What would make it another key."""
        return Wish.of(self.traffic, self.pairs or (), self.nodes, self.tasks)


class KeyDone(Message):
    """I shall not send like that any more. Without a phase: none of my keys is needed."""

    event: Literal["key-done"]
    phase: _Phase | None = None


class KeyList(Message):
    """Which keys does the job have?"""

    event: Literal["key-list"]


@dataclass(frozen=True)
class Wish:
    """A pattern by name, or pairs of ranks (from, to, from, …), and where the ranks are."""

    traffic: str | None = None
    pairs: tuple[int, ...] = ()
    nodes: str | None = None
    tasks: str | None = None

    @classmethod
    def of(
        cls, traffic: str | None, pairs: Iterable[int], nodes: str | None, tasks: str | None
    ) -> Wish:
        """One task a node is the same as none given."""
        ones = tasks is None or re.fullmatch(r"1(\(x\d+\))?(,1(\(x\d+\))?)*", tasks)
        return cls(traffic, tuple(pairs), nodes, None if ones else tasks)


@dataclass
class Ticket:
    """A request that waits for the loop, or its answer for the client."""

    job: str
    phase: str
    uid: int
    wish: Wish
    lease: float | None
    came: float
    """Monotonic seconds."""
    answer: dict[str, Any] | None = None
    until: float = 0.0
    """When the answer is forgotten."""
    nodes: int = 1
    """That ask for it, at most."""

    @property
    def with_job(self) -> bool:
        """Whether the key lasts as long as the job."""
        return self.phase == WHOLE_JOB


@dataclass(frozen=True)
class Leased:
    """What the desk must know of a key that is in force."""

    uid: int
    """The job's owner."""
    wish: Wish
    answer: Mapping[str, Any]


@dataclass
class Orders:
    """What clients want of keys that are there: by (job, phase)."""

    done: set[tuple[str, str]] = field(default_factory=set)
    renewed: dict[tuple[str, str], float | None] = field(default_factory=dict)
    """With the seconds they asked for."""


class KeyDesk:
    """Safe from any thread. `wake` is called when there is something for the loop."""

    models: ClassVar[Mapping[str, type[Message]]] = {
        "key": KeyRequest,
        "key-done": KeyDone,
        "key-list": KeyList,
    }

    def __init__(
        self,
        authority: Authority | None = None,
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.authority = authority or Authority(frozenset())
        self._wake, self._clock = wake, clock
        self.closed = ""
        """Why there are no keys here at all; empty where there are."""
        self._lock = threading.Lock()
        self._tickets: dict[tuple[str, str, int], Ticket] = {}
        self._leased: Mapping[tuple[str, str], Leased] = {}
        self._orders = Orders()

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """The answer to a message of `models`. Raises `Refused`."""
        self.authority.own(message, uid)
        if isinstance(message, KeyRequest):
            ticket = Ticket(
                message.job, message.phase, uid, message.wish, message.lease, self._clock()
            )
            return self._ask(ticket)
        if isinstance(message, KeyDone):
            return self._done(message, uid)
        mine = [
            dict(one.answer)
            for (job, _), one in sorted(self._leased.items())
            if job == message.job and self._may(uid, one)
        ]
        return {"keys": mine[:16], "more": max(0, len(mine) - 16)}

    def of_job(self, event: Event, uid: int) -> Mapping[str, Any]:
        """What a job's start or a step's hint is answered beside the usual: the environment of the
        key for the whole job, or in `wait` the seconds after which to ask again."""
        traffic = event.known_traffic
        if event.event == "end" or not traffic or traffic.startswith("weight="):
            return {}
        nodes = 1 + (event.nodes or "").count(",") + _span(event.nodes or "")
        wish = Wish.of(traffic, (), event.nodes, event.tasks)
        found = self._ask(
            Ticket(event.job, WHOLE_JOB, uid, wish, None, self._clock(), nodes=nodes), event.event
        )
        if found.get("state") == "waiting":
            return {"wait": found["retry"]}
        if env := found.get("env"):
            return {"env": env}
        return {"note": found.get("sentence") or found.get("error", "")}

    def _ask(self, new: Ticket, event: str = "key") -> dict[str, Any]:
        """Another wish for a phase that has a key: a step knows better than the start where the
        ranks are, so its hint makes another key; an application has to say `done`."""
        with self._lock:
            leased = self._leased.get((new.job, new.phase))
            if leased and self._may(new.uid, leased):
                if leased.wish == new.wish or event == "start":
                    self._orders.renewed[new.job, new.phase] = new.lease
                    return dict(leased.answer)
                if event == "key":
                    return _error(
                        f"phase {new.phase} of job {new.job} has a key for other traffic; say "
                        "done before you ask anew"
                    )
            if self.closed:
                return none(self.closed)
            key, now = (new.job, new.phase, new.uid), self._clock()
            known = self._tickets.get(key)
            if known and known.wish == new.wish and (known.answer is None or now < known.until):
                known.nodes = max(known.nodes, new.nodes)
                retry = max(0.05, known.nodes / NODES_A_SECOND)
                return known.answer or {"state": "waiting", "retry": round(retry, 3)}
            if known is None and len(self._tickets) >= MOST:
                self._forget(now)
                if len(self._tickets) >= MOST:
                    raise Refused(Why.FULL, f"more than {MOST} requests for keys are waiting")
            self._tickets[key] = new
        self._wake()
        return {"state": "waiting", "retry": max(0.05, round(new.nodes / NODES_A_SECOND, 3))}

    def _done(self, message: KeyDone, uid: int) -> dict[str, Any]:
        with self._lock:
            gone = {
                key
                for key, one in self._leased.items()
                if key[0] == message.job and message.phase in (None, key[1]) and self._may(uid, one)
            }
            asked = [
                key
                for key in self._tickets
                if key[0] == message.job and message.phase in (None, key[1]) and key[2] == uid
            ]
            waiting = [key for key in asked if self._tickets[key].answer is None]
            for key in asked:
                del self._tickets[key]
            if not gone and not waiting:
                of = f"phase {message.phase} of job" if message.phase else "job"
                return _error(f"{of} {message.job} has no key")
            self._orders.done |= gone
            self._leased = {key: one for key, one in self._leased.items() if key not in gone}
        self._wake()
        return {"state": "done", "phases": sorted(phase for _, phase in gone)}

    def _may(self, uid: int, leased: Leased) -> bool:
        return uid in (leased.uid, *self.authority.trusted)

    def _forget(self, now: float) -> None:
        for key, one in list(self._tickets.items()):
            if one.answer is not None and now >= one.until:
                del self._tickets[key]

    # For the agent's loop.

    @property
    def busy(self) -> bool:
        """Whether somebody waits for the loop."""
        return bool(self._orders.done) or any(
            one.answer is None for one in list(self._tickets.values())
        )

    def age(self, ticket: Ticket) -> float:
        """Seconds since it was first asked."""
        return self._clock() - ticket.came

    def pending(self) -> list[Ticket]:
        """Requests without an answer, the oldest first."""
        with self._lock:
            self._forget(self._clock())
            return sorted(
                (one for one in self._tickets.values() if one.answer is None),
                key=lambda one: one.came,
            )

    def orders(self) -> Orders:
        """All since the last call."""
        with self._lock:
            orders, self._orders = self._orders, Orders()
        return orders

    def answer(self, ticket: Ticket, answer: dict[str, Any]) -> None:
        """Why there is no key for it; kept for a while."""
        with self._lock:
            ticket.answer, ticket.until = answer, self._clock() + KEPT

    def show(self, leased: Mapping[tuple[str, str], Leased]) -> None:
        """The keys in force; requests for them are answered by now."""
        with self._lock:
            self._leased = {key: one for key, one in leased.items() if key not in self._orders.done}
            for key, one in list(self._tickets.items()):
                found = leased.get(key[:2])
                served = found and found.wish == one.wish and one.answer is None
                if found and served and self._may(one.uid, found):
                    del self._tickets[key]


def none(sentence: str) -> dict[str, Any]:
    """The job goes on with offset 0, and why."""
    return {"state": "none", "offset": 0, "sentence": sentence}


def _error(sentence: str) -> dict[str, Any]:
    return {"ok": False, "error": sentence}


def _span(nodes: str) -> int:
    """Nodes of a host list, roughly: the sum of its first bracket's ranges."""
    inside = nodes.partition("[")[2].partition("]")[0]
    count = 0
    for part in inside.split(","):
        first, dash, last = part.partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            count += max(0, int(last) - int(first))
    return count
