"""When to look, and when to act: a pure function of what was heard, seen and done, and when.

Events only make the agent look sooner; what it does, it does for what the queue shows. Three
things keep it from twitching: a burst of events is one look (`debounce`); two installs because of
jobs are some time apart (`min_install`); and, where `min_gain` asks for it, a change that would
bring little waits for more to come (`worth`). What bounds all of them is `max_staleness`: a change
is acted on that long after it was first seen, whatever it brings. Trouble (another engine in force,
another fabric) is `urgent` and never waits.

All times are seconds of one clock that does not jump; nothing here reads a clock or sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from sar_agent.agent.decide import Reason
from sar_agent.config.model import AgentConfig

PATIENT = frozenset({Reason.JOBS, Reason.TOPOLOGY, Reason.ENGINE})
"""Reasons that can wait: routes in force serve everyone, if not as well as others would. Better
routes after a repair do not: they have a pace of their own (`reoptimise_seconds`,
`reoptimise_gain`)."""


@dataclass(frozen=True)
class PaceLimits:
    """Seconds, and a share. `min_install` and `debounce_most` are at most `max_staleness`."""

    interval: float = 30.0
    debounce: float = 0.5
    debounce_most: float = 3.0
    min_install: float = 5.0
    min_gain: float = 0.0
    max_staleness: float = 60.0

    @classmethod
    def of(cls, config: AgentConfig) -> PaceLimits:
        """As configured."""
        return cls(
            config.interval_seconds,
            config.debounce_seconds,
            config.debounce_max_seconds,
            config.min_install_interval_seconds,
            config.min_gain,
            config.max_staleness_seconds,
        )


class ReroutePacer:
    """Fed by the loop: `heard`, `begin`, then one of `calm`, `hold_back`; `installed`; `end`."""

    def __init__(self, pace: PaceLimits) -> None:
        self.pace = pace
        self._first = self._last = inf
        """Of the events that no look has answered."""
        self._began = self._ended = -inf
        self._installed = -inf
        self._changed = inf
        """When the change that is not acted on yet was first seen."""
        self._ripe = inf

    def heard(self, at: float) -> None:
        """An event came at `at`."""
        self._first = min(self._first, at)
        self._last = at if self._last == inf else max(self._last, at)

    def look_at(self) -> float:
        """When the next look is due; in the past if it is overdue."""
        pace, due = self.pace, self._ended + self.pace.interval
        if self._first < inf:
            due = min(due, self._last + pace.debounce, self._first + pace.debounce_most)
        # What has to wait is looked at again when it need not any more; once, lest a look that
        # ends in another way (Slurm is away) is repeated without a pause.
        for at in (self._rest_until(), self._stale_at(), self._ripe):
            if at > self._began:
                due = min(due, at)
        return due

    def begin(self, now: float) -> None:
        """A look begins: it sees all that was told of until now."""
        self._first = self._last = inf
        self._ripe = inf
        self._began = now

    def ripe(self, at: float) -> None:
        """The look saw a job that is old enough to count only at `at`."""
        self._ripe = min(self._ripe, at)

    def end(self, now: float) -> None:
        """The pass is over."""
        self._ended = now

    def calm(self) -> None:
        """The look found nothing to act on."""
        self._changed = inf

    def hold_back(self, now: float, reason: Reason) -> float:
        """The look found `reason` to act: the seconds to wait, 0 to act now."""
        if reason not in PATIENT:
            return 0.0
        self._changed = min(self._changed, now)
        return max(0.0, self._rest_until() - now)

    def worth(self, now: float, gain: float) -> bool:
        """Whether a plan that makes the worst by `gain` less (a share) is to be installed now."""
        return self.pace.min_gain <= max(gain, 0.0) or now >= self._stale_at()

    def installed(self, now: float) -> None:
        """Other routes are in force (or were planned, where nothing is installed)."""
        self._installed, self._changed = now, inf

    def _rest_until(self) -> float:
        return self._installed + self.pace.min_install if self._changed < inf else -inf

    def _stale_at(self) -> float:
        return self._changed + self.pace.max_staleness
