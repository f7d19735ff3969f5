"""How much of something clients may have at a time: connections, waiting requests, bytes.

All of it is bounded, each client's part is bounded, and a part of all is kept for clients that are
trusted. What comes back with time (messages a second) is counted by `events/rate.py`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Hashable
from enum import Enum
from typing import Generic, TypeVar

Client = TypeVar("Client", bound=Hashable)


class Bound(Enum):
    """What leaves no room."""

    ALL = "all"
    ONE = "one"


class Quota(Generic[Client]):
    """All clients together may have `most`. A client that is not `trusted` may have `of_one`, and
    all such clients together `most - kept`. Safe from any thread."""

    def __init__(
        self, most: int, of_one: int, *, kept: int = 0, trusted: Collection[Client] = frozenset()
    ) -> None:
        self.most, self.of_one, self.kept, self.trusted = most, of_one, kept, trusted
        self.of: Counter[Client] = Counter()
        """What each client has; only those that have something."""
        self._changed = threading.Condition()

    def lacks(self, client: Client, amount: int = 1, instead: int = 0) -> Bound | None:
        """The bound that leaves no room for `amount`, which replaces `instead` of the client's."""
        more = amount - instead
        with self._changed:
            total = self.of.total() + more
            if client not in self.trusted:
                if self.of[client] + more > self.of_one:
                    return Bound.ONE
                if total - sum(self.of[each] for each in self.trusted) > self.most - self.kept:
                    return Bound.ALL
            return Bound.ALL if total > self.most else None

    def try_add(self, client: Client, amount: int = 1, patience: float = 0.0) -> Bound | None:
        """Adds `amount` if there is room, or will be within `patience` seconds; otherwise returns
        what leaves none."""
        with self._changed:
            bound = self.lacks(client, amount)
            if bound and patience:
                self._changed.wait_for(lambda: not self.lacks(client, amount), patience)
                bound = self.lacks(client, amount)
            if not bound:
                self.add(client, amount)
            return bound

    def add(self, client: Client, amount: int = 1) -> None:
        """Adds `amount`, whether or not there is room."""
        with self._changed:
            self.of[client] += amount
            if not self.of[client]:
                del self.of[client]
            self._changed.notify_all()

    def give(self, client: Client, amount: int = 1) -> None:
        """The client has so much less."""
        self.add(client, -amount)

    def clear(self) -> None:
        """Nobody has anything."""
        with self._changed:
            self.of.clear()
            self._changed.notify_all()
