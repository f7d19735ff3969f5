"""What jobs of a user and name have sent before: the weight of a new one, until it is counted."""

from __future__ import annotations

from collections.abc import Iterable

MOST_PRIORS = 5000
"""Pairs of user and name that are kept; of more, those that ended longest ago are forgotten."""
NEWEST = 0.5
"""How much the last job counts; all before it count the rest."""
Prior = tuple[str, str, float]
"""User, name of the job, weight."""


class WeightPriors:
    """Weights by user and name, the one that was learned last at the end."""

    def __init__(self, saved: Iterable[Prior] = ()) -> None:
        self._weights: dict[tuple[str, str], float] = {}
        for user, name, weight in saved:
            self._put((user, name), weight)

    def learn(self, user: str, name: str, weight: float) -> None:
        """A job of `user` called `name` has ended, and had this smoothed weight."""
        if not (user and name):
            return
        old = self._weights.get((user, name))
        self._put((user, name), weight if old is None else old + NEWEST * (weight - old))

    def of(self, user: str, name: str) -> float | None:
        """The weight to expect; None where no such job was counted."""
        return self._weights.get((user, name))

    def saved(self) -> tuple[Prior, ...]:
        """All of them, for the disk."""
        return tuple((user, name, weight) for (user, name), weight in self._weights.items())

    def _put(self, key: tuple[str, str], weight: float) -> None:
        self._weights.pop(key, None)
        self._weights[key] = weight
        while len(self._weights) > MOST_PRIORS:
            del self._weights[next(iter(self._weights))]
