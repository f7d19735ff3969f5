"""Requests for keys that wait, within bounds: for each uid, each job, all users, and in bytes.

A quarter of the room is kept for root and SlurmUser, who speak for every job. Of a job that the
queue has not shown anybody may speak, so of these each uid has few.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sar_agent.events.message import MessageRefused, RefusalReason

MOST = 4096
"""Requests, with answers that are kept a while."""
MOST_OF_USERS = MOST * 3 // 4
MOST_OF_A_UID = 256
MOST_OF_A_JOB = 128
"""Phases of one job, asked for by one uid: there are at most 126 LID offsets for keys."""
MOST_UNSEEN = 32
"""Of one uid, for jobs that the queue has not shown."""
MOST_BYTES = 64 << 20
MOST_BYTES_OF_USERS = MOST_BYTES * 3 // 4
MOST_BYTES_OF_A_UID = 4 << 20
WHOLE_JOB = "job"
"""The phase of a key that `--sar-traffic` asks for."""
Name = tuple[str, str, int]
"""Job, phase, uid."""


@dataclass(frozen=True)
class TrafficWish:
    """A pattern by name, or pairs of ranks (from, to, from, …), and where the ranks are."""

    traffic: str | None = None
    pairs: tuple[int, ...] = ()
    nodes: str | None = None
    tasks: str | None = None

    @classmethod
    def of(
        cls, traffic: str | None, pairs: Iterable[int], nodes: str | None, tasks: str | None
    ) -> TrafficWish:
        """One task a node is the same as none given."""
        ones = tasks is None or re.fullmatch(r"1(\(x\d+\))?(,1(\(x\d+\))?)*", tasks)
        return cls(traffic, tuple(pairs), nodes, None if ones else tasks)


@dataclass
class Ticket:
    """A request that waits for the loop, or its answer for the client."""

    job: str
    phase: str
    uid: int
    wish: TrafficWish
    lease: float | None
    came: float
    """Monotonic seconds."""
    answer: dict[str, Any] | None = None
    until: float = 0.0
    """When the answer is forgotten."""
    nodes: int = 1
    """That ask for it, at most."""
    seen: bool = True
    """Whether the queue had shown the job when it was asked for."""

    @property
    def with_job(self) -> bool:
        """Whether the key lasts as long as the job."""
        return self.phase == WHOLE_JOB

    @property
    def name(self) -> Name:
        """By which it is found again."""
        return self.job, self.phase, self.uid

    @property
    def size(self) -> int:
        """Bytes that it keeps, roughly: a rank is an object of its own."""
        wish = self.wish
        return 1000 + 40 * len(wish.pairs) + len(wish.nodes or "") + len(wish.tasks or "")


class Tickets:
    """By name. Not safe from several threads."""

    def __init__(self) -> None:
        self._all: dict[Name, Ticket] = {}
        self._of_uid: dict[int, dict[Name, Ticket]] = {}
        self._bytes: Counter[int] = Counter()
        self._forget_at = -math.inf

    def __iter__(self) -> Iterator[Ticket]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    @property
    def bytes(self) -> int:
        """That all of them keep, roughly."""
        return sum(self._bytes.values())

    def get(self, name: Name) -> Ticket | None:
        """The one of that name."""
        return self._all.get(name)

    def of(self, uid: int) -> Collection[Ticket]:
        """Those of one uid."""
        return self._of_uid.get(uid, {}).values()

    def remove(self, name: Name) -> None:
        """Nothing where there is none."""
        if ticket := self._all.pop(name, None):
            mine = self._of_uid[ticket.uid]
            del mine[name]
            self._bytes[ticket.uid] -= ticket.size
            if not mine:
                del self._of_uid[ticket.uid], self._bytes[ticket.uid]

    def put(self, ticket: Ticket) -> None:
        """Instead of the one of its name."""
        self.remove(ticket.name)
        self._all[ticket.name] = ticket
        self._of_uid.setdefault(ticket.uid, {})[ticket.name] = ticket
        self._bytes[ticket.uid] += ticket.size

    def forget(self, now: float) -> None:
        """Answers that were kept long enough. Looked for once a second."""
        if now < self._forget_at:
            return
        self._forget_at = now + 1.0
        for one in self:
            if one.answer is not None and now >= one.until:
                self.remove(one.name)

    def room_for(self, new: Ticket, trusted: Collection[int]) -> None:
        """Raises `MessageRefused` where there is none."""
        self._room_for_all(new, trusted)
        if new.uid in trusted:
            return
        mine = [one for one in self.of(new.uid) if one.name != new.name]
        if len(mine) >= MOST_OF_A_UID:
            raise _many(f"uid {new.uid} has {MOST_OF_A_UID} requests for keys waiting")
        if sum(one.job == new.job for one in mine) >= MOST_OF_A_JOB:
            raise _many(f"job {new.job} has {MOST_OF_A_JOB} requests for keys waiting")
        if not new.seen and sum(not one.seen for one in mine) >= MOST_UNSEEN:
            raise _many(
                f"uid {new.uid} has asked for keys of {MOST_UNSEEN} jobs that the queue does not "
                "show yet"
            )
        if self._bytes[new.uid] + new.size > MOST_BYTES_OF_A_UID:
            raise MessageRefused(
                RefusalReason.OVERSIZE,
                f"requests of uid {new.uid} for keys that wait are {MOST_BYTES_OF_A_UID >> 20} MB "
                "already; ask for fewer pairs at a time, or by a pattern's name",
            )

    def _room_for_all(self, new: Ticket, trusted: Collection[int]) -> None:
        users = new.uid not in trusted
        most = MOST_OF_USERS if users else MOST
        most_bytes = MOST_BYTES_OF_USERS if users else MOST_BYTES
        known = self._all.get(new.name)
        count = len(self) - bool(known)
        size = self.bytes - (known.size if known else 0)
        if users:  # trusted ones take nothing of the users' share
            count -= sum(len(self.of(uid)) for uid in trusted)
            size -= sum(self._bytes[uid] for uid in trusted)
        if count >= most or size + new.size > most_bytes:
            raise MessageRefused(
                RefusalReason.FULL, f"more than {most} requests for keys are waiting"
            )


def _many(sentence: str) -> MessageRefused:
    return MessageRefused(RefusalReason.TOO_MANY, sentence)
