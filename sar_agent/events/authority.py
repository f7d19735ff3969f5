"""Which users may send which messages.

The credential (or the owner of the file) identifies the sender, never the message. root and
SlurmUser may report on all jobs. Any other user may only give hints on own jobs, and Slurm's queue
tells whose job it is. A hint on a job that the queue has not shown yet is kept with its sender, and
used only once the queue has confirmed the owner (`agent/hints.py`).
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
"""Message ids; munge itself recognises a credential for as long as it is valid."""


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job when the queue was last read: uid of its owner (None if the source does not tell) and
    traffic hint."""

    uid: int | None
    traffic: str | None


class Authority:
    """Safe from any thread. `known` holds the jobs by number, as the queue was last read."""

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
        # Two generations of ids: the older is dropped as a whole, so the cost per message is
        # constant.
        self._ids: set[int] = set()
        self._older_ids: set[int] = set()

    def check_event(self, event: Event, uid: int) -> None:
        """Whether `uid` may send this event. Raises `MessageRefused`."""
        if uid not in self.trusted and event.event != "hint":
            raise MessageRefused(
                RefusalReason.NOT_ALLOWED, f"uid {uid} may not report the {event.event} of jobs"
            )
        self.check_owner(event, uid)

    def check_owner(self, message: Message, uid: int) -> bool:
        """Returns `is_owner` of the message's job. Raises `MessageRefused` if the job is another
        user's, and for a message that was received before."""
        job = self.known.get(message.job)
        if uid not in self.trusted and job and job.uid is not None and job.uid != uid:
            raise MessageRefused(
                RefusalReason.NOT_OWNER, f"job {message.job} does not belong to uid {uid}"
            )
        self._check_replay(message.id)
        return self.is_owner(message.job, uid)

    def is_owner(self, job: str, uid: int) -> bool:
        """Whether `uid` certainly may send messages on the job: it is trusted, or the queue has
        shown the job as its own."""
        known = self.known.get(job)
        return uid in self.trusted or bool(known and known.uid == uid)

    def is_news(self, event: Event) -> bool:
        """Whether reading the queue may show something new. Every step of a job sends a hint, maybe
        many a second."""
        if event.event != "hint":
            return True
        job, traffic = self.known.get(event.job), event.known_traffic
        return job is None or (traffic is not None and traffic != job.traffic)

    def _check_replay(self, id: str) -> None:
        """Refuses a message that was received before. munge recognises a credential; this
        recognises the message in another credential, and in a file."""
        number = int(id, 16)
        with self._lock:
            if number in self._ids or number in self._older_ids:
                raise MessageRefused(RefusalReason.REPLAYED, "this message was received before")
            if len(self._ids) >= self._remembered:
                self._ids, self._older_ids = set(), self._ids
            self._ids.add(number)


def trusted_uids(users: Iterable[str]) -> frozenset[int]:
    """The uids of names or numbers. A name unknown to this machine is left out and logged."""
    uids = set()
    for user in users:
        try:
            uids.add(int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid)
        except KeyError:
            log.info("events.trusted_users: this machine has no user %s; left out", user)
    return frozenset(uids)
