"""Requests for routing keys that wait, limited per uid, per job, for all users, and in bytes.

A quarter of the room is reserved for root and SlurmUser, who send for every job. Any user may send
a request for a job that the queue has not shown, so each uid may have only few of these.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sar_agent.events.message import MessageRefused, RefusalReason
from sar_agent.util.plural import plural
from sar_agent.util.quota import Bound, Quota

MOST_TICKETS = 4096
"""Requests, including those whose answers are kept for a while."""
RESERVED = MOST_TICKETS // 4
"""Of `MOST_TICKETS`, room for trusted users."""
MOST_OF_A_UID = 256
MOST_OF_A_JOB = 128
"""Requests of one uid for one job; there are at most 126 LID offsets for keys."""
MOST_UNSEEN = 32
"""Requests of one uid for jobs that the queue has not shown."""
MOST_BYTES = 64 << 20
MOST_BYTES_OF_A_UID = 4 << 20
WHOLE_JOB = "job"
"""The phase of a key that `--sar-traffic` requests."""
Name = tuple[str, str, int]
"""Job, phase, uid."""


@dataclass(frozen=True)
class TrafficWish:
    """The traffic that a key is for: the name of a pattern, or pairs of ranks (from, to, from, …),
    and the hosts of the ranks."""

    traffic: str | None = None
    pairs: tuple[int, ...] = ()
    nodes: str | None = None
    tasks: str | None = None

    @classmethod
    def of(
        cls, traffic: str | None, pairs: Iterable[int], nodes: str | None, tasks: str | None
    ) -> TrafficWish:
        """A wish; one task on each node is the same as no `tasks`."""
        single = tasks is None or re.fullmatch(r"1(\(x\d+\))?(,1(\(x\d+\))?)*", tasks)
        return cls(traffic, tuple(pairs), nodes, None if single else tasks)


@dataclass
class Ticket:
    """A request that waits for the agent's loop, or the answer for its client."""

    job: str
    phase: str
    uid: int
    wish: TrafficWish
    lease: float | None
    came: float
    """When it was received, in monotonic seconds."""
    answer: dict[str, Any] | None = None
    until: float = 0.0
    """When the answer is dropped."""
    nodes: int = 1
    """Number of nodes that may repeat the request."""
    seen: bool = True
    """Whether the queue had shown the job when the request came."""

    @property
    def with_job(self) -> bool:
        """Whether the key lasts as long as the job."""
        return self.phase == WHOLE_JOB

    @property
    def name(self) -> Name:
        """The key of this ticket in `Tickets`."""
        return self.job, self.phase, self.uid

    @property
    def size(self) -> int:
        """Bytes in memory, roughly: each rank is a Python object."""
        wish = self.wish
        return 1000 + 40 * len(wish.pairs) + len(wish.nodes or "") + len(wish.tasks or "")


class Tickets:
    """Tickets by name. Not safe from several threads."""

    def __init__(self, trusted: Collection[int] = frozenset()) -> None:
        self._all: dict[Name, Ticket] = {}
        self._count = Quota(MOST_TICKETS, MOST_OF_A_UID, kept=RESERVED, trusted=trusted)
        self._bytes = Quota(MOST_BYTES, MOST_BYTES_OF_A_UID, kept=MOST_BYTES // 4, trusted=trusted)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    def get(self, name: Name) -> Ticket | None:
        """The ticket of that name, or None."""
        return self._all.get(name)

    def of(self, uid: int) -> list[Ticket]:
        """The tickets of one uid."""
        return [ticket for ticket in self._all.values() if ticket.uid == uid]

    def remove(self, name: Name) -> None:
        """Removes the ticket of that name, if there is one."""
        if ticket := self._all.pop(name, None):
            self._count.give(ticket.uid)
            self._bytes.give(ticket.uid, ticket.size)

    def add(self, ticket: Ticket) -> None:
        """Adds a ticket; it replaces the one of the same name."""
        self.remove(ticket.name)
        self._all[ticket.name] = ticket
        self._count.add(ticket.uid)
        self._bytes.add(ticket.uid, ticket.size)

    def forget(self, now: float) -> None:
        """Drops answers whose time is over."""
        for ticket in self:
            if ticket.answer is not None and now >= ticket.until:
                self.remove(ticket.name)

    def room_for(self, new: Ticket) -> None:
        """Raises `MessageRefused` if there is no room for the ticket."""
        known = self.get(new.name)
        count = self._count.lacks(new.uid, instead=known is not None)
        size = self._bytes.lacks(new.uid, new.size, instead=known.size if known else 0)
        if Bound.ALL in (count, size):
            raise MessageRefused(RefusalReason.FULL, f"{len(self)} requests for keys are waiting")
        if count:
            raise _many(f"{MOST_OF_A_UID} requests for keys of uid {new.uid} are waiting")
        if size:
            raise MessageRefused(
                RefusalReason.OVERSIZE,
                f"the waiting requests for keys of uid {new.uid} take {MOST_BYTES_OF_A_UID >> 20} "
                "MB already; request fewer pairs at a time, or use the name of a pattern",
            )
        if new.uid in self._count.trusted:
            return
        own = [ticket for ticket in self.of(new.uid) if ticket.name != new.name]
        if sum(ticket.job == new.job for ticket in own) >= MOST_OF_A_JOB:
            raise _many(f"{MOST_OF_A_JOB} requests for keys of job {new.job} are waiting")
        if not new.seen and sum(not ticket.seen for ticket in own) >= MOST_UNSEEN:
            raise _many(
                f"uid {new.uid} has requested keys for {plural(MOST_UNSEEN, 'job')} that the "
                "queue does not "
                "show yet"
            )


def _many(sentence: str) -> MessageRefused:
    return MessageRefused(RefusalReason.TOO_MANY, sentence)
