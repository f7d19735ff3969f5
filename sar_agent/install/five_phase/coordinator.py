"""The coordinator among threads: workers of the door hand in what subscribers say, and one driver
(a pass of the agent) moves the run on. Each step is on the disk before anybody hears of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from sar_agent.install.five_phase.machine import Rules, State, restarted, step
from sar_agent.install.five_phase.saved import Disk
from sar_agent.install.five_phase.trace import Trace
from sar_agent.install.five_phase.words import Action, Message


class Coordinator:
    """Goes on from what is saved in `folder`. `clock` must not jump; `trace` is a file for replays.

    Raises `InputError` from where a step cannot be saved; then it is not made."""

    def __init__(
        self,
        folder: Path,
        rules: Rules,
        clock: Callable[[], float] = time.monotonic,
        trace: Path | None = None,
    ) -> None:
        self.rules, self.clock = rules, clock
        self._disk, self._trace = Disk(folder), Trace(trace)
        self._news = threading.Condition()
        saved, now = self._disk.load(), clock()
        self._saved = saved
        self._state = restarted(saved, now, rules) if saved else State()
        self._trace.started(saved or State())
        self.all_known_at = now if saved else now + rules.lease
        """From when on whoever is not known here has left offset 0 by itself: its lease is over."""

    @property
    def state(self) -> State:
        """As it is now; it is never changed, only replaced."""
        return self._state

    def hear(self, message: Message) -> State:
        """What a subscriber says; the state after it, for the answer."""
        with self._news:
            self._step(message)
            if not self._state.awaited(self.clock(), self.rules):
                self._news.notify_all()
            return self._state

    def drive(self, message: Message) -> tuple[Action, ...]:
        """One step of the driver: what is to be done."""
        with self._news:
            return self._step(message)

    def wait(self) -> None:
        """Until there is something to do: all have acknowledged, or time is up."""
        with self._news:
            if self._state.awaited(self.clock(), self.rules):
                # A lease that lapses tells nobody, so it is looked at now and then.
                self._news.wait(max(0.0, min(self._state.due - self.clock(), self.rules.repeat)))

    def _step(self, message: Message) -> tuple[Action, ...]:
        state, actions = step(self._state, message, self.clock(), self.rules)
        if state is not self._state:
            self._disk.save(self._saved, state)
            self._trace.step(self._state, message, state)
            self._state = self._saved = state
        return actions
