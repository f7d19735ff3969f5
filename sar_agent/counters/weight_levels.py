"""When counted weights of jobs become those that routes are made for.

A weight is one of the levels 1, ½, ¼, ⅛ and 1/16. What follows from the rules here:

1. In any T seconds there are at most 1 + T / `interval` reroutes because of weights, whatever ports
   count: `due` says no until `interval` after the last one.
2. Between two changes of a job's level in opposite directions, its smoothed weight has moved by a
   factor of at least √2. So a job whose smoothed weight stays within a factor of √2 never swings.
   In powers of two: a weight at p becomes a level of at most p + ¼ on the way up, which is left
   downwards only below level − ¾, and so below p − ½; and the same the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

LEAST = 4
"""The level of the floor: 2 ** -4. The cap is level 0, full speed."""
BAND = 0.75
"""A level is kept while the weight is within this many powers of two of it."""
RETRY = 1 / 6
"""Share of `interval` after which a proposal that gained too little is looked at again."""


class WeightLevels:
    """The levels that routes are made for. `weights` is read by others and changes in place."""

    def __init__(self, interval: float) -> None:
        """`interval`: least seconds between two reroutes because of weights."""
        self.interval = interval
        self.levels: dict[str, int] = {}
        """By job; a job that is not here has full speed."""
        self.weights: dict[str, float] = {}
        """The same as weights, without those of full speed."""
        self._used_at = self._tried_at = -math.inf

    def propose(self, measured: Mapping[str, float], running: Collection[str]) -> dict[str, int]:
        """The levels that `measured` calls for; those of jobs that are not measured stay, and those
        of ended jobs are forgotten."""
        present = set(running)
        levels = {job: level for job, level in self.levels.items() if job in present}
        for job in present & measured.keys():
            place = min(max(-math.log2(max(measured[job], 1e-9)), 0.0), float(LEAST))
            level = levels.get(job, 0)
            if place > level + BAND:
                levels[job] = math.floor(place + 0.25)
            elif place < level - BAND:
                levels[job] = math.ceil(place - 0.25)
        return {job: level for job, level in levels.items() if level}

    def start(self, expected: Mapping[str, float]) -> None:
        """Jobs that have no level yet start at that of their expected weight."""
        proposed = self.propose(expected, expected)
        if new := {job: level for job, level in proposed.items() if job not in self.levels}:
            self.use(self.levels | new)

    def due(self, now: float) -> bool:
        """Whether a reroute because of weights may be considered; `now` by a clock that does not
        jump."""
        return (
            now >= self._used_at + self.interval and now >= self._tried_at + RETRY * self.interval
        )

    def tried(self, now: float) -> None:
        """A proposal was looked at."""
        self._tried_at = now

    def use(self, levels: Mapping[str, int]) -> None:
        """From now on, these are the levels."""
        self.levels = dict(levels)
        self.weights.clear()
        self.weights.update(weights_of(levels))

    def used(self, now: float) -> None:
        """Routes for the levels came into force."""
        self._used_at = now


def weights_of(levels: Mapping[str, int]) -> dict[str, float]:
    """Levels as weights.

    >>> weights_of({"17": 2})
    {'17': 0.25}
    """
    return {job: 2.0**-level for job, level in levels.items()}
