"""Former tables whose packets may still be in flight.

A packet waits at the head of a queue for at most OpenSM's head-of-queue lifetime; then it is
dropped. Once switches have confirmed new tables, all packets on their way follow these. They are
gone after that lifetime for each hop of the longest route, and once more for the queue where they
are. Until then, the former tables take part in the mixtures with the next ones. So the next load
waits for that long, or is proved safe with three tables instead of two. Where OpenSM has sent
tables that nobody saw (another engine's, for a moment), the next load waits in any case.

OpenSM reports the age of tables by the wall clock, which is believed only while it runs evenly.
**Weak spot:** a step while no agent runs is not noticed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sar_agent.check.walk import LOOP, trace
from sar_agent.check.wiring import wiring_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import UNKNOWN, RoutesFile
from sar_agent.install.subnet_manager import InForce, SmStatus
from sar_agent.routing.routes import Routes

LONGEST_ROUTE = 64
"""Hops; after so many lifetimes the longest route need not be known."""
CLOCK_TOLERANCE = 0.1
"""Seconds by which the wall clock may differ from the steady one between two looks."""
TABLES_IN_A_PROOF = 4
"""Tables in a proof; where there are more, the load waits for the oldest."""


class _Gone(NamedTuple):
    file: RoutesFile
    on: dict[bytes, Routes]
    """The same on a fabric's indices, by its digest, where that is known."""
    since: float
    """By the clock: when the next tables were confirmed."""
    until: float
    """When its packets are gone; infinite where OpenSM sets no limit."""


class RecentTables:
    """The tables that this process saw in force. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._last: InForce | None = None
        self._on: dict[bytes, Routes] = {}
        """Of `_last`, as `_Gone.on`."""
        self._gone: list[_Gone] = []
        self._blind_until = 0.0
        self._wall = time.time() - time.monotonic()

    def saw(self, fabric: Fabric, now: InForce, hops: int | None = None) -> None:
        """`now` was read back, on the indices of `fabric`. `hops` between switches are those of its
        longest route, where they are known."""
        last, self._last = self._last, now
        on, self._on = self._on, {} if now.had is not None else {fabric.digest: now.routes}
        wall, self._wall = self._wall, time.time() - time.monotonic()
        same = last is not None and last.digest == now.digest
        unseen = last is None or _sent_others(last.status, now.status)
        if same and not unseen:
            return
        # OpenSM may have been done with them for a while; its clock has no parts of a second.
        age = max(0.0, time.time() - now.status.built_at - 1)
        if not now.confirmed or abs(self._wall - wall) > CLOCK_TOLERANCE:
            age = 0.0
        since = self.clock() - age
        until = since + self._life(fabric, now, age, hops)
        if unseen and until < math.inf:
            self._blind_until = max(self._blind_until, until)
        if last and not same:
            self._gone += [_Gone(file, on, since, until) for file in _tables(last)]

    def also(self, fabric: Fabric) -> tuple[Routes, ...]:
        """Former tables by which packets on their way may have been sent, on `fabric`'s indices."""
        self._forget()
        return tuple(g.on.get(fabric.digest) or file_to_routes(fabric, g.file) for g in self._gone)

    def left(self) -> float:
        """Seconds until only the tables in force matter; infinite where that is never."""
        self._forget()
        ends = [gone.until for gone in self._gone] + [self._blind_until]
        return max(0.0, max(ends) - self.clock())

    def must_wait(self) -> float:
        """Seconds to wait in any case: former tables are unknown, or too many to prove."""
        self._forget()
        most = sorted(gone.until for gone in self._gone)[:-TABLES_IN_A_PROOF]
        ends = [end for end in most if end < math.inf] + [self._blind_until]
        return max(0.0, max(ends) - self.clock())

    def _life(self, fabric: Fabric, now: InForce, age: float, hops: int | None) -> float:
        """Seconds after which a packet that follows `now` is gone; 0 where `now` is `age` seconds
        old, and that is longer."""
        each = now.status.head_of_queue_seconds
        if each < 0:
            return math.inf
        if each == 0 or age > each * LONGEST_ROUTE:
            return 0.0
        hops = int(longest_way(fabric, now.routes).max()) if hops is None else hops
        return each * (hops + 1)

    def _forget(self) -> None:
        now = self.clock()
        self._gone = [gone for gone in self._gone if gone.until > now]
        for_ever = [gone for gone in self._gone if gone.until == math.inf]
        if for_ever:  # three tables are what can be proved
            newest = for_ever[-1].since
            self._gone = [g for g in self._gone if g.until < math.inf or g.since == newest]


def _sent_others(last: SmStatus, now: SmStatus) -> bool:
    """Whether the manager may have sent tables between these two that are neither's."""
    return now.process != last.process or now.routings > last.routings + 1


def _tables(found: InForce) -> list[RoutesFile]:
    """The tables that switches had, or may have had."""
    file = found.file
    if file.had is None:
        return [file]
    other = np.where(file.had == UNKNOWN, file.forwarding, file.had)
    return [file, replace(file, forwarding=other, had=None)]


def longest_way(fabric: Fabric, routes: Routes) -> I32:
    """int32[O, D]: hops between switches of the longest route to each destination, from any switch;
    a route that loops counts as all switches. Cables that are down have carried packets, too."""
    up = replace(fabric, channel_up=np.ones_like(fabric.channel_up), switches_down=())
    wiring, every = wiring_of(up), np.ones(fabric.destinations, np.bool_)
    found = np.empty(routes.egress.shape[:2], np.int32)
    for longest, table in zip(found, routes.egress, strict=True):
        hops = trace(wiring, table, every)
        longest[:] = np.maximum(hops.max(axis=1), -1 - hops.min(axis=1))
    return np.where(found == -1 - LOOP, np.int32(fabric.switches), found)
