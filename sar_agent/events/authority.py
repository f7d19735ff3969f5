"""Who may say what.

The credential (or the file's owner) says who speaks, never the message. root and SlurmUser may say
all; a user may give hints on own jobs, and whose job it is the queue says, not the sender. Of a job
that the queue has not shown yet nobody knows that: such a hint is kept apart with its speaker and
used only once the queue has confirmed it (`agent/hints.py`).
"""

from __future__ import annotations

import logging
import pwd
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sar_agent.events.message import Event, Message, MessageRefused, RefusalReason

log = logging.getLogger(__name__)
REMEMBERED = 16384
"""Ids; munge itself knows a credential again for as long as it is valid."""


@dataclass(frozen=True, slots=True)
class KnownJob:
    """As of the last look: the owner's uid (None: the source does not tell) and the traffic."""

    uid: int | None
    traffic: str | None


class Authority:
    """Safe from any thread; `known` is replaced as a whole after each look."""

    def __init__(
        self,
        trusted: frozenset[int],
        remembered: int = REMEMBERED,
        refused: Callable[[RefusalReason, str], None] = lambda why, sentence: None,
    ) -> None:
        """`refused` is called for what is refused after its message was answered."""
        self.trusted, self.refused = trusted, refused
        self.known: Mapping[str, KnownJob] = {}
        self._remembered = remembered
        self._lock = threading.Lock()
        # Two ages of ids: the older is forgotten as a whole, so the cost stays flat.
        self._ids: set[int] = set()
        self._older: set[int] = set()

    def check(self, event: Event, uid: int) -> None:
        """Raises `MessageRefused`."""
        self.may_tell(event.event, uid)
        self.own(event, uid)

    def may_tell(self, event: str, uid: int) -> None:
        """Of Slurm's hooks. Raises `MessageRefused`."""
        if uid not in self.trusted and event != "hint":
            raise MessageRefused(
                RefusalReason.NOT_ALLOWED, f"uid {uid} may not tell of the {event} of jobs"
            )

    def own(self, message: Message, uid: int) -> bool:
        """Whether the queue has shown that `uid` may speak of the job; trusted users may of all.
        Raises `MessageRefused` where the job is somebody else's, and for a message heard before."""
        job = self.known.get(message.job)
        if uid not in self.trusted and job and job.uid is not None and job.uid != uid:
            raise MessageRefused(
                RefusalReason.NOT_OWNER, f"job {message.job} is not one of uid {uid}"
            )
        self._once(message.id)
        return self.shows(message.job, uid)

    def shows(self, job: str, uid: int) -> bool:
        """Whether `uid` may speak of the job for certain: it is trusted, or the queue says so."""
        known = self.known.get(job)
        return uid in self.trusted or bool(known and known.uid == uid)

    def is_news(self, event: Event) -> bool:
        """Whether a look may find something. Steps may be many a second, each with its hint."""
        if event.event != "hint":
            return True
        job, traffic = self.known.get(event.job), event.known_traffic
        return job is None or (traffic is not None and traffic != job.traffic)

    def _once(self, id: str) -> None:
        """munge knows its credentials again; this knows a message in another credential, and one
        in a file."""
        number = int(id, 16)
        with self._lock:
            if number in self._ids or number in self._older:
                raise MessageRefused(RefusalReason.REPLAYED, "this message was heard before")
            if len(self._ids) >= self._remembered:
                self._ids, self._older = set(), self._ids
            self._ids.add(number)


def trusted_uids(users: Iterable[str]) -> frozenset[int]:
    """Names or numbers; a name that this machine does not know is left out, and said."""
    uids = set()
    for user in users:
        try:
            uids.add(int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid)
        except KeyError:
            log.info("events.users: %s is no user of this machine, left out", user)
    return frozenset(uids)
