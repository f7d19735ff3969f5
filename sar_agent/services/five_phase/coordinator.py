"""The coordinator among threads: the message server's workers pass on what subscribers say, and one
driver (a pass of the agent) advances the run. Each step is on disk before anybody learns of it, and
a thread that waits for the disk delays no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from sar_agent.errors import InputError, SarError
from sar_agent.services.five_phase.messages import (
    Acknowledge,
    Action,
    Message,
    Subscribe,
    Unsubscribe,
)
from sar_agent.services.five_phase.protocol import CoordinatorState, LeaseRules, restarted, step
from sar_agent.services.five_phase.storage import CoordinatorStorage
from sar_agent.services.five_phase.trace import InstalledFiles, Trace
from sar_agent.util.quota import Quota

MOST_SUBSCRIBERS = 65536
"""Subscribers."""
MOST_OF_A_USER = 8192
MOST_OF_A_JOB = 1024
RESERVED = 4096
"""Of `MOST_SUBSCRIBERS`, places for subscribers of trusted users."""


class UncoveredSubscriber(SarError):
    """A subscriber that no update waits for; it gets no lease."""


class Coordinator:
    """Continues from the state saved in `folder`. `clock` must not jump; `trace` is a file for
    replays.

    Methods raise `InputError` where a step cannot be saved; then the step is not taken."""

    def __init__(
        self,
        folder: Path,
        rules: LeaseRules,
        clock: Callable[[], float] = time.monotonic,
        trace: Path | None = None,
    ) -> None:
        self.rules, self.clock = rules, clock
        self._disk, self._trace = CoordinatorStorage(folder), Trace(trace)
        self._changed = threading.Condition()
        saved, now = self._disk.load(), clock()
        self._saved: CoordinatorState | None = None
        """The state on disk; None until the first step, which writes all of it."""
        self._state = restarted(saved, now, rules) if saved else CoordinatorState()
        self._trace.started(saved or CoordinatorState())
        self.of_job: Quota[str] = Quota(MOST_SUBSCRIBERS, MOST_OF_A_JOB)
        self.of_user: Quota[int | None] = Quota(
            MOST_SUBSCRIBERS, MOST_OF_A_USER, kept=RESERVED, trusted={None}
        )
        """Subscribers by job and by user; None are root and SlurmUser."""
        self._count(CoordinatorState(), self._state, self._state.members)
        self.all_known_at = now if saved else now + rules.lease
        """From then on, a subscriber that is not known here has left offset 0 by itself, since its
        lease is over."""

    @property
    def state(self) -> CoordinatorState:
        """The state now; it is never changed, only replaced."""
        return self._state

    def hear(self, message: Message) -> CoordinatorState:
        """Take a subscriber's message; returns the state after it, for the answer. Raises
        `UncoveredSubscriber`."""
        name = message.subscriber if isinstance(message, Subscribe) else ""
        with self._changed:
            now = self.clock()
            if isinstance(message, Subscribe) and (
                why := self._state.refuses(message, now, self.rules)
            ):
                raise UncoveredSubscriber(why)
            new = name and name not in self._state.members
            self._step(message, now)
            after = self._state
            if not after.awaited(now, self.rules):
                self._changed.notify_all()
        try:
            self._disk.sync()
        except InputError:
            if new:  # it hears a refusal, so it must not stay a member
                with suppress(InputError):
                    self.drive(Unsubscribe(name))
            raise
        return after

    def drive(self, message: Message) -> tuple[Action, ...]:
        """Take a step of the driver; returns the actions to carry out."""
        with self._changed:
            return self._step(message, self.clock())

    def trace_files(self, files: InstalledFiles) -> None:
        """Trace what the driver found on disk and in force."""
        self._trace.files(self._state, files)

    def wait(self) -> None:
        """Return once there is something to do: all have acknowledged, or time is up."""
        with self._changed:
            if self._state.awaited(self.clock(), self.rules):
                # No event marks the end of a lease, so leases are checked now and then.
                self._changed.wait(max(0.0, min(self._state.due - self.clock(), self.rules.repeat)))

    def _step(self, message: Message, now: float) -> tuple[Action, ...]:
        before = self._state
        state, actions = step(before, message, now, self.rules)
        if state is not before:
            names: Collection[str] = ()
            if isinstance(message, Subscribe | Unsubscribe | Acknowledge):
                names = (message.subscriber,)
            elif state.members is not before.members:
                names = before.members.keys() ^ state.members.keys()
            self._disk.save(self._saved, state, names)
            self._trace.step(before, message, state)
            self._count(before, state, names)
            self._state = self._saved = state
        return actions

    def _count(
        self, before: CoordinatorState, after: CoordinatorState, names: Collection[str]
    ) -> None:
        for name in names:
            if gone := before.members.get(name):
                self.of_job.give(gone.job)
                self.of_user.give(gone.uid)
            if new := after.members.get(name):
                self.of_job.add(new.job)
                self.of_user.add(new.uid)
