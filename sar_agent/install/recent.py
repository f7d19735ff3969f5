"""Former tables whose packets may still be in flight.

A packet waits at the head of a queue for at most OpenSM's head-of-queue lifetime; then it is
dropped. Once switches have confirmed new tables, all packets on their way follow these. They are
gone after that lifetime for each hop of the longest route, and once more for the queue where they
are. Until then, the former tables take part in the mixtures with the next ones. So the next load
waits for that long, or is proved safe with three tables instead of two. Where OpenSM has sent
tables that nobody saw (another engine's, for a moment), the next load waits in any case.

How old tables are is OpenSM's word by the wall clock, which counts only while that clock runs
evenly. **Weak spot:** a step while no agent runs is not noticed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import UNKNOWN, RoutesFile
from sar_agent.install.subnet_manager import InForce, SmStatus
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel

FAR = 64
"""Hops; after so many lifetimes the longest route need not be known."""
UNEVEN = 0.1
"""Seconds by which the wall clock may differ from the steady one between two looks."""
MOST = 4
"""Tables in a proof; where there are more, the load waits for the oldest."""


class _Gone(NamedTuple):
    file: RoutesFile
    since: float
    """By the clock: when the next tables were confirmed."""
    until: float
    """When its packets are gone; infinite where OpenSM sets no limit."""


class RecentTables:
    """The tables that this process saw in force. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._last: InForce | None = None
        self._gone: list[_Gone] = []
        self._blind_until = 0.0
        self._wall = time.time() - time.monotonic()
        self._hops: tuple[bytes, U8, I32] | None = None
        """A fabric's digest, tables and their `longest_way`."""

    def saw(self, fabric: Fabric, now: InForce) -> None:
        """`now` was read back, on the indices of `fabric`."""
        last, self._last = self._last, now
        wall, self._wall = self._wall, time.time() - time.monotonic()
        same = last is not None and last.digest == now.digest
        unseen = last is None or _sent_others(last.status, now.status)
        if same and not unseen:
            return
        # OpenSM may have been done with them for a while; its clock has no parts of a second.
        age = max(0.0, time.time() - now.status.built_at - 1)
        if not now.confirmed or abs(self._wall - wall) > UNEVEN:
            age = 0.0
        since = self.clock() - age
        until = since + self._life(fabric, now, age)
        if unseen and until < math.inf:
            self._blind_until = max(self._blind_until, until)
        if last and not same:
            self._gone += [_Gone(file, since, until) for file in _tables(last)]

    def also(self, fabric: Fabric) -> tuple[Routes, ...]:
        """Former tables by which packets on their way may have been sent, on `fabric`'s indices."""
        self._forget()
        return tuple(file_to_routes(fabric, gone.file) for gone in self._gone)

    def left(self) -> float:
        """Seconds until only the tables in force matter; infinite where that is never."""
        self._forget()
        ends = [gone.until for gone in self._gone] + [self._blind_until]
        return max(0.0, max(ends) - self.clock())

    def must_wait(self) -> float:
        """Seconds to wait in any case: former tables are unknown, or too many to prove."""
        self._forget()
        most = sorted(gone.until for gone in self._gone)[:-MOST]
        ends = [end for end in most if end < math.inf] + [self._blind_until]
        return max(0.0, max(ends) - self.clock())

    def _life(self, fabric: Fabric, now: InForce, age: float) -> float:
        """Seconds after which a packet that follows `now` is gone; 0 where `now` is `age` seconds
        old, and that is longer."""
        each, egress = now.status.head_of_queue_seconds, now.routes.egress
        if each < 0:
            return math.inf
        if each == 0 or age > each * FAR:
            return 0.0
        known = old = None
        if self._hops and self._hops[0] == fabric.digest:
            _, old, known = self._hops
        hops = longest_way(fabric, now.routes, known, old)
        self._hops = fabric.digest, egress, hops
        return each * (int(hops.max()) + 1)

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


def longest_way(
    fabric: Fabric, routes: Routes, known: I32 | None = None, old: U8 | None = None
) -> I32:
    """int32[O, D]: hops between switches of the longest route to each destination, from any switch;
    a route that loops counts as all switches. `known` is the result for the tables `old` on the
    same fabric: only routes that differ are walked."""
    ports = fabric.channel_by_port
    following = np.append(fabric.channel_target, -1)[ports].astype(np.int32)
    if known is None or old is None or old.shape != routes.egress.shape:
        hops, differs = np.zeros(routes.egress.shape[:2], np.int32), None
    else:
        hops, differs = known.copy(), old
    for offset, table in enumerate(routes.egress):
        which = np.ones(len(table), np.bool_)
        if differs is not None:
            which = (differs[offset] != table).any(axis=1)
        _longest(following, table, which, hops[offset])
    return hops


@kernel
def _longest(following: I32, table: U8, which: Bool, longest: I32) -> None:  # pragma: no cover
    """`following` int32[S, P]: the switch behind a port, or -1; `table` uint8[D, S]; puts the
    result for each of `which` bool[D] into `longest` int32[D]."""
    destinations, switches = table.shape
    ports = following.shape[1]
    hops = np.empty(switches, np.int32)
    stack = np.empty(switches, np.int32)
    for d in range(destinations):
        if not which[d]:
            continue
        hops[:] = -1
        most = 0
        for start in range(switches):
            s, depth = start, 0
            while s >= 0 and hops[s] < 0 and depth < switches:
                stack[depth] = s
                depth += 1
                port = table[d, s]
                s = following[s, port] if port < ports else -1
            if s >= 0 and hops[s] < 0:
                most = switches
                break
            far = hops[s] + 1 if s >= 0 else 0
            while depth:
                depth -= 1
                hops[stack[depth]] = far
                far += 1
            most = max(most, hops[start])
        longest[d] = most
