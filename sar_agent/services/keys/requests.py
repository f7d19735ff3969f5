"""Requests for routing keys: RODRequest and RODDone of routing-keys-2017, Section III.

The threads of the message server only record requests here. The agent's loop serves them
(`agent/install_keys.py`) and records the answers, so no connection has to wait. A client that is
answered `waiting` repeats the request, which is also how it renews a lease. An answer that is not a
key is kept for a few seconds, since every node of a job may send the same request. `tickets.py`
limits how many requests may wait.
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
from sar_agent.events.message import Event, Message, MessageRefused, Tasks
from sar_agent.services.keys.tickets import WHOLE_JOB, Ticket, Tickets, TrafficWish
from sar_agent.services.keys.turns import Turns
from sar_agent.util.hostlist import count_names

LONGEST_WAIT = 10.0
"""Seconds; a user whose next turn is later is answered that there is no key."""
ANSWER_KEPT = 10.0
"""Seconds for which an answer that is not a key is repeated."""
NODES_A_SECOND = 500
"""Nodes of one job that may repeat a request in a second; the server can handle 1,000."""
MOST_NODES = 65536
"""Nodes in a host list, at most, if the job is not known yet."""
LONGEST_NODES = 32768
"""Characters in a host list."""

_Phase = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:+-]{1,63}$")]
_Rank = Annotated[int, Field(ge=0, lt=2**20)]


class KeyRequest(Message):
    """RODRequest: the traffic of a phase, for which routes without contention are requested."""

    longest: ClassVar[int] = 65536

    event: Literal["key"]
    phase: _Phase
    traffic: Annotated[str, Field(max_length=200)] | None = None
    """The name of a pattern."""
    pairs: Annotated[list[_Rank] | None, Field(fail_fast=True, max_length=longest // 2)] = None
    """Or pairs of ranks: from, to, from, to, …; parsed up to the first error."""
    nodes: Annotated[str, Field(max_length=LONGEST_NODES)] | None = None
    """Host list of the ranks; None: all hosts of the job."""
    tasks: Tasks | None = None
    """Tasks on each node; None: one."""
    lease: Annotated[float, Field(gt=0)] | None = None
    """Seconds; None: the default of the site."""

    @property
    def wish(self) -> TrafficWish:
        """The parts of the request that determine the key."""
        return TrafficWish.of(self.traffic, self.pairs or (), self.nodes, self.tasks)


class KeyDone(Message):
    """RODDone: a phase has ended; without a phase, all phases of the job."""

    event: Literal["key-done"]
    phase: _Phase | None = None


class KeyList(Message):
    """A request for the list of the job's keys."""

    event: Literal["key-list"]


@dataclass(frozen=True)
class LeasedKey:
    """What must be known here about a key that is leased."""

    uid: int
    """The job's owner."""
    wish: TrafficWish
    answer: Mapping[str, Any]
    in_force: bool = True
    """False: the key is lost, or is being computed again for a changed fabric."""


@dataclass
class KeyOrders:
    """What clients have ordered for leased keys, by (job, phase)."""

    done: set[tuple[str, str]] = field(default_factory=set)
    renewed: dict[tuple[str, str], float | None] = field(default_factory=dict)
    """With the requested seconds."""


class KeyRequests:
    """Safe from any thread. `wake` is called when there is work for the agent's loop."""

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
        """Why this site has no keys at all; empty if it has."""
        self._lock = threading.Lock()
        self._tickets = Tickets(self.authority.trusted)
        self._turns = Turns(self.authority.trusted, lambda: self._clock())
        self._leased: Mapping[tuple[str, str], LeasedKey] = {}
        self._orders = KeyOrders()
        self._owed_at: float | None = None
        """When to compute keys for a changed fabric; None: no key has to be computed."""

    def handle(self, message: Message, uid: int) -> Mapping[str, Any]:
        """The answer to a message. Raises `MessageRefused`."""
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
        keys = [
            dict(leased[name].answer)
            for name in sorted(name for name in leased if name[0] == message.job)
            if leased[name].in_force and self._may(uid, leased[name])
        ]
        return {"keys": keys[:16], "more": max(0, len(keys) - 16)}

    def of_job(self, event: Event, uid: int) -> Mapping[str, Any]:
        """What the answer to a job's start or to a step's hint says about its key: the environment,
        or in `wait` the seconds after which to send the hint again."""
        traffic = event.known_traffic
        if event.event == "end" or not traffic or traffic.startswith("weight="):
            return {}
        wish = TrafficWish.of(traffic, (), event.nodes, event.tasks)
        new = Ticket(event.job, WHOLE_JOB, uid, wish, None, self._clock())
        try:
            new.nodes = count_names(event.nodes or "", MOST_NODES)
            new.seen = self.authority.is_owner(event.job, uid)
            answer = self._ask(new, event.event)
        except InputError as error:
            return {"note": str(error)}
        except MessageRefused as refused:  # the rest of the message is accepted
            self.authority.refused(refused.reason, str(refused))
            return {"note": str(refused)}
        if answer.get("state") == "waiting":
            return {"wait": answer["retry"]}
        if env := answer.get("env"):
            return {"env": env}
        return {"note": answer.get("sentence") or answer.get("error", "")}

    def _ask(self, new: Ticket, event: str = "key") -> dict[str, Any]:
        """The answer to a request, which is recorded if it has none yet. If the phase has a key for
        other traffic, a step's hint replaces it, since the step knows where the ranks are and the
        start of the job does not; an application must send key-done first."""
        with self._lock:
            leased = self._leased.get((new.job, new.phase))
            if leased and leased.in_force and self._may(new.uid, leased):
                if leased.wish == new.wish or event == "start":
                    self._orders.renewed[new.job, new.phase] = new.lease
                    return dict(leased.answer)
                if event == "key":
                    return _error(
                        f"phase {new.phase} of job {new.job} has a key for other traffic; "
                        "report that phase as done before you request another key"
                    )
            if self.closed:
                return none(self.closed)
            now = self._clock()
            known = self._tickets.get(new.name)
            if known and known.wish == new.wish and (known.answer is None or now < known.until):
                known.nodes = max(known.nodes, new.nodes)
                retry = max(0.05, known.nodes / NODES_A_SECOND)
                return known.answer or {"state": "waiting", "retry": round(retry, 3)}
            if (left := self._turns.left(new.uid)) > LONGEST_WAIT:
                return none(
                    f"uid {new.uid} has had keys changed too often; its next key is made in "
                    f"{left:.0f} s at the earliest"
                )
            self._tickets.forget(now)
            self._tickets.room_for(new)
            self._tickets.add(new)
        self._wake()
        return {"state": "waiting", "retry": max(0.05, round(new.nodes / NODES_A_SECOND, 3))}

    def _done(self, message: KeyDone, uid: int) -> dict[str, Any]:
        with self._lock:
            done = {
                name
                for name, key in self._leased.items()
                if name[0] == message.job
                and message.phase in (None, name[1])
                and self._may(uid, key)
            }
            requested = [
                ticket
                for ticket in self._tickets.of(uid)
                if ticket.job == message.job and message.phase in (None, ticket.phase)
            ]
            waiting = [ticket for ticket in requested if ticket.answer is None]
            for ticket in requested:
                self._tickets.remove(ticket.name)
            if not done and not waiting:
                subject = f"phase {message.phase} of job" if message.phase else "job"
                return _error(f"{subject} {message.job} has no key")
            self._orders.done |= done
            self._leased = {name: key for name, key in self._leased.items() if name not in done}
        self._wake()
        return {"state": "done", "phases": sorted(phase for _, phase in done)}

    def _may(self, uid: int, leased: LeasedKey) -> bool:
        return uid in (leased.uid, *self.authority.trusted)

    # For the agent's loop.

    @property
    def busy(self) -> bool:
        """Whether there is work for the agent's loop."""
        with self._lock:
            owed = self._owed_at is not None and self._clock() >= self._owed_at
            return owed or bool(self._orders.done) or any(map(self._due, self._tickets))

    def _due(self, ticket: Ticket) -> bool:
        """Whether a request waits and its user may have a turn."""
        return ticket.answer is None and not self._turns.left(ticket.uid)

    def begin(self, ticket: Ticket) -> None:
        """Work on a request begins: a turn of its user."""
        with self._lock:
            self._turns.take(ticket.uid, ticket.came)

    def later(self, seconds: float) -> None:
        """Postpones the keys for a changed fabric."""
        if self._owed_at is not None:
            self._owed_at = self._clock() + seconds

    def age(self, ticket: Ticket) -> float:
        """Seconds since the request was first received."""
        return self._clock() - ticket.came

    def pending(self) -> list[Ticket]:
        """Requests without an answer of users who may have a turn: first those of root and
        SlurmUser, then those of users in turn, one of each, the oldest first."""
        turn: Counter[int] = Counter()
        order = []
        with self._lock:
            self._tickets.forget(self._clock())
            waiting = [ticket for ticket in self._tickets if self._due(ticket)]
        for ticket in sorted(waiting, key=lambda ticket: ticket.came):
            is_user = ticket.uid not in self.authority.trusted
            order.append((is_user, turn[ticket.uid], ticket))
            turn[ticket.uid] += is_user
        return [ticket for *_, ticket in sorted(order, key=lambda row: row[:2])]

    def orders(self) -> KeyOrders:
        """Returns and clears the orders since the last call."""
        with self._lock:
            orders, self._orders = self._orders, KeyOrders()
        return orders

    def answer(self, ticket: Ticket, answer: dict[str, Any]) -> None:
        """Records why a request gets no key; the answer is kept for `ANSWER_KEPT` seconds."""
        with self._lock:
            ticket.answer, ticket.until = answer, self._clock() + ANSWER_KEPT

    def show(self, leased: Mapping[tuple[str, str], LeasedKey], *, owed: bool = False) -> None:
        """Records all leased keys, which answers the requests for those in force. `owed`: some have
        to be computed for a changed fabric."""
        with self._lock:
            if not owed or self._owed_at is None:
                self._owed_at = self._clock() if owed else None
            self._leased = {n: key for n, key in leased.items() if n not in self._orders.done}
            for ticket in self._tickets:
                key = leased.get((ticket.job, ticket.phase))
                if not key or not key.in_force or ticket.answer is not None:
                    continue
                if key.wish == ticket.wish and self._may(ticket.uid, key):
                    self._tickets.remove(ticket.name)


def none(sentence: str) -> dict[str, Any]:
    """The answer that there is no key, and why: the job continues on LID offset 0."""
    return {"state": "none", "offset": 0, "sentence": sentence}


def _error(sentence: str) -> dict[str, Any]:
    return {"ok": False, "error": sentence}
