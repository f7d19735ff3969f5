"""The desk where routing keys are asked for: the RODRequest and RODDone of routing-keys-2017, III.

Requests are only noted here, in the door's threads; the agent's loop serves them (`agent/keys/`)
and puts down what came of it. So nobody waits on a connection: a client that hears `waiting` asks
again with the same words, which is also how a lease is renewed. Answers that are no key are kept a
few seconds, since every node of a job may ask. How much may wait is `tickets.py`'s.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from sar_agent.errors import InputError
from sar_agent.events.authority import Authority
from sar_agent.events.message import (
    Event,
    Message,
    MessageHead,
    MessageRefused,
    RefusalReason,
    Tasks,
)
from sar_agent.keys import tickets
from sar_agent.keys.tickets import WHOLE_JOB, Ticket, Tickets, TrafficWish
from sar_agent.slurm.hostlist import count_names

KEPT = 10.0
"""Seconds for which an answer that is no key is given again."""
NODES_A_SECOND = 500
"""Of one job, that may ask again: a door hears some 1,000 messages a second."""
MOST_NODES = 65536
"""That a host list may have, where the job's are not known yet."""
LONGEST_NODES = 32768
"""Characters of a host list."""

_Phase = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:+-]{1,63}$")]
_Rank = Annotated[int, Field(ge=0, lt=2**20)]


class KeyRequest(Message):
    """I shall send like this; lead me where nobody is in the way."""

    longest: ClassVar[int] = 65536

    event: Literal["key"]
    phase: _Phase
    traffic: Annotated[str, Field(max_length=200)] | None = None
    """A pattern by name."""
    pairs: Annotated[list[_Rank] | None, Field(fail_fast=True, max_length=longest // 2)] = None
    """Or its ranks: from, to, from, to, …; read until the first that is wrong."""
    nodes: Annotated[str, Field(max_length=LONGEST_NODES)] | None = None
    """Host list of those the ranks are on; None: all of the job's."""
    tasks: Tasks | None = None
    """None: one a node."""
    lease: Annotated[float, Field(gt=0)] | None = None
    """Seconds; None: as long as the site gives."""

    @property
    def wish(self) -> TrafficWish:
        """What would make it another key."""
        return TrafficWish.of(self.traffic, self.pairs or (), self.nodes, self.tasks)


class KeyDone(Message):
    """I shall not send like that any more. Without a phase: none of my keys is needed."""

    event: Literal["key-done"]
    phase: _Phase | None = None


class KeyList(Message):
    """Which keys does the job have?"""

    event: Literal["key-list"]


@dataclass(frozen=True)
class LeasedKey:
    """What the desk must know of a key that is in force."""

    uid: int
    """The job's owner."""
    wish: TrafficWish
    answer: Mapping[str, Any]
    in_force: bool = True
    """False: it is lost, or being made for a fabric that has changed."""


@dataclass
class KeyOrders:
    """What clients want of keys that are there: by (job, phase)."""

    done: set[tuple[str, str]] = field(default_factory=set)
    renewed: dict[tuple[str, str], float | None] = field(default_factory=dict)
    """With the seconds they asked for."""


class KeyRequests:
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
        self._tickets = Tickets()
        self._leased: Mapping[tuple[str, str], LeasedKey] = {}
        self._orders = KeyOrders()
        self._owed_at: float | None = None
        """When keys are to be made for a fabric that has changed; None: there are none."""

    def admit(self, head: MessageHead, uid: int) -> None:
        """Before a request is read as a whole. Raises `MessageRefused` where there is no room for
        it."""
        if head.event != "key" or uid in self.authority.trusted:
            return
        with self._lock:
            mine = list(self._tickets.of(uid))
        if len(mine) >= tickets.MOST_OF_A_UID and all(one.job != head.job for one in mine):
            many = f"uid {uid} has {tickets.MOST_OF_A_UID} requests for keys waiting"
            raise MessageRefused(RefusalReason.TOO_MANY, many)

    def take(self, message: Message, uid: int) -> Mapping[str, Any]:
        """The answer to a message of `models`. Raises `MessageRefused`."""
        seen = self.authority.check_owner(message, uid)
        if isinstance(message, KeyRequest):
            ticket = Ticket(
                message.job, message.phase, uid, message.wish, message.lease, self._clock()
            )
            ticket.seen = seen
            return self._ask(ticket)
        if isinstance(message, KeyDone):
            return self._done(message, uid)
        leased = self._leased
        mine = [
            dict(leased[key].answer)
            for key in sorted(key for key in leased if key[0] == message.job)
            if leased[key].in_force and self._may(uid, leased[key])
        ]
        return {"keys": mine[:16], "more": max(0, len(mine) - 16)}

    def of_job(self, event: Event, uid: int) -> Mapping[str, Any]:
        """What a job's start or a step's hint is answered beside the usual: the environment of the
        key for the whole job, or in `wait` the seconds after which to ask again."""
        traffic = event.known_traffic
        if event.event == "end" or not traffic or traffic.startswith("weight="):
            return {}
        wish = TrafficWish.of(traffic, (), event.nodes, event.tasks)
        new = Ticket(event.job, WHOLE_JOB, uid, wish, None, self._clock())
        try:
            new.nodes = count_names(event.nodes or "", MOST_NODES)
            new.seen = self.authority.is_owner(event.job, uid)
            found = self._ask(new, event.event)
        except InputError as error:
            return {"note": str(error)}
        except MessageRefused as refused:  # what it says beside this is taken
            self.authority.refused(refused.reason, str(refused))
            return {"note": str(refused)}
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
            if leased and leased.in_force and self._may(new.uid, leased):
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
            now = self._clock()
            known = self._tickets.get(new.name)
            if known and known.wish == new.wish and (known.answer is None or now < known.until):
                known.nodes = max(known.nodes, new.nodes)
                retry = max(0.05, known.nodes / NODES_A_SECOND)
                return known.answer or {"state": "waiting", "retry": round(retry, 3)}
            self._tickets.forget(now)
            self._tickets.room_for(new, self.authority.trusted)
            self._tickets.put(new)
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
                one
                for one in self._tickets.of(uid)
                if one.job == message.job and message.phase in (None, one.phase)
            ]
            waiting = [one for one in asked if one.answer is None]
            for one in asked:
                self._tickets.remove(one.name)
            if not gone and not waiting:
                of = f"phase {message.phase} of job" if message.phase else "job"
                return _error(f"{of} {message.job} has no key")
            self._orders.done |= gone
            self._leased = {key: one for key, one in self._leased.items() if key not in gone}
        self._wake()
        return {"state": "done", "phases": sorted(phase for _, phase in gone)}

    def _may(self, uid: int, leased: LeasedKey) -> bool:
        return uid in (leased.uid, *self.authority.trusted)

    # For the agent's loop.

    @property
    def busy(self) -> bool:
        """Whether somebody waits for the loop."""
        with self._lock:
            owed = self._owed_at is not None and self._clock() >= self._owed_at
            return (
                owed or bool(self._orders.done) or any(one.answer is None for one in self._tickets)
            )

    def later(self, seconds: float) -> None:
        """Keys that are owed are not asked for again before that."""
        if self._owed_at is not None:
            self._owed_at = self._clock() + seconds

    def age(self, ticket: Ticket) -> float:
        """Seconds since it was first asked."""
        return self._clock() - ticket.came

    def pending(self) -> list[Ticket]:
        """Requests without an answer: those of root and SlurmUser first, then one of each user in
        turn, the oldest first."""
        turn: Counter[int] = Counter()
        order = []
        with self._lock:
            self._tickets.forget(self._clock())
            waiting = [one for one in self._tickets if one.answer is None]
        for one in sorted(waiting, key=lambda one: one.came):
            order.append((one.uid not in self.authority.trusted, turn[one.uid], one))
            turn[one.uid] += one.uid not in self.authority.trusted
        return [one for *_, one in sorted(order, key=lambda of: of[:2])]

    def orders(self) -> KeyOrders:
        """All since the last call."""
        with self._lock:
            orders, self._orders = self._orders, KeyOrders()
        return orders

    def answer(self, ticket: Ticket, answer: dict[str, Any]) -> None:
        """Why there is no key for it; kept for a while."""
        with self._lock:
            ticket.answer, ticket.until = answer, self._clock() + KEPT

    def show(self, leased: Mapping[tuple[str, str], LeasedKey], *, owed: bool = False) -> None:
        """All leases; requests for those in force are answered by now. `owed`: some are to be made
        for a fabric that has changed."""
        with self._lock:
            if not owed or self._owed_at is None:
                self._owed_at = self._clock() if owed else None
            self._leased = {key: one for key, one in leased.items() if key not in self._orders.done}
            for one in self._tickets:
                found = leased.get((one.job, one.phase))
                if not found or not found.in_force or one.answer is not None:
                    continue
                if found.wish == one.wish and self._may(one.uid, found):
                    self._tickets.remove(one.name)


def none(sentence: str) -> dict[str, Any]:
    """The job goes on with offset 0, and why."""
    return {"state": "none", "offset": 0, "sentence": sentence}


def _error(sentence: str) -> dict[str, Any]:
    return {"ok": False, "error": sentence}
