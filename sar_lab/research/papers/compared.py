"""Order claims: comparisons of results, with the sentence that they answer.

    times = compared(by_label(results))
    claim(times["NRK"] < times["ARK"], "NRK faster than ARK")
    claim(most(times["r-NCA-u"].within(0.2, times["D-mod-k"])), "… within 20 % at most w2")

A comparison is made at each place (w2, tree, …) and must hold at all of them, unless `most`,
`all_but` or `never` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sar_lab.research.papers.claims import RESAMPLES, Claim, order, times_as_much, told_apart
from sar_lab.research.papers.published import Quote
from sar_lab.research.statistics import Estimate, bootstrap_of, median_of

Draws = float | Sequence[float] | Estimate
"""The numbers of a place: one, those of the seeds, or what was made of them."""
Answer = bool | None
"""None: not told apart."""


@dataclass(frozen=True)
class Judge:
    """How two results of a place are compared."""

    above: Callable[[Draws, Draws, float], Answer]
    """Whether the first is more than so many times the second."""
    ratio: Callable[[Draws, Draws], float]


@dataclass(frozen=True)
class Held:
    """Whether a comparison holds, and at how many of how many places."""

    holds: Answer
    count: int
    places: int


@dataclass(frozen=True)
class Compared:
    """Results at each place, `factor` times."""

    places: Sequence[Draws]
    judge: Judge
    factor: float = 1.0

    def __rmul__(self, factor: float) -> Compared:
        return replace(self, factor=factor * self.factor)

    def __gt__(self, other: Compared | float) -> Held:
        return _every([self.judge.above(*pair) for pair in self._pairs(other)])

    def __lt__(self, other: Compared | float) -> Held:
        found = self._of(other)
        return _every([found.judge.above(*pair) for pair in found._pairs(self)])

    def not_above(self, other: Compared | float) -> Held:
        """Whether it is told that it is not more at any place."""
        return _every([_not(self.judge.above(*pair)) for pair in self._pairs(other)])

    def within(self, share: float, other: Compared | float) -> Held:
        """Whether it differs from the other by no more than this share of it."""
        pairs = self._pairs(other)
        return _every([abs(self.judge.ratio(a, b) - 1) <= share for a, b, _ in pairs])

    def equals(self, other: Compared | float) -> Held:
        """Whether the two are the same."""
        return _every([a == b for a, b, _ in self._pairs(other)])

    def _of(self, other: Compared | float) -> Compared:
        if isinstance(other, Compared):
            return other
        return Compared([other] * len(self.places), self.judge)

    def _pairs(self, other: Compared | float) -> list[tuple[Draws, Draws, float]]:
        """With how many times the second the first is to be more than."""
        found = self._of(other)
        factor = found.factor / self.factor
        return [(a, b, factor) for a, b in zip(self.places, found.places, strict=True)]


def compared(
    numbers: Mapping[str, Sequence[Draws]], judge: Judge | None = None
) -> dict[str, Compared]:
    """By name: the results of each place. Paired by seed unless `judge` says otherwise."""
    return {name: Compared(places, judge or PAIRED) for name, places in numbers.items()}


def claim(
    held: Held, says: str, *, ours: str = "", published: str = "", said: Quote | None = None
) -> Claim:
    """The claim that something holds, in words. `ours` are our numbers as text, by default at how
    many places it holds."""
    text = ours or (f"at {held.count} of {held.places}" if held.places > 1 else "")
    return order(says, held.holds, text, published or "yes", said)


def most(held: Held) -> Held:
    """At more than half of the places."""
    return replace(held, holds=2 * held.count > held.places)


def all_but(count: int, held: Held) -> Held:
    """At all places but at most `count`."""
    return replace(held, holds=held.count >= held.places - count)


def never(held: Held) -> Held:
    """At no place."""
    return replace(held, holds=not held.count, count=held.places - held.count)


def grows(curves: Sequence[Sequence[float]]) -> Held:
    """Whether each place is a curve that grows."""
    return _every([all(a < b for a, b in pairwise(curve)) for curve in curves])


def falls(curves: Sequence[Sequence[float]]) -> Held:
    """Whether each place is a curve that falls."""
    return _every([all(a > b for a, b in pairwise(curve)) for curve in curves])


def is_gain(draws: Sequence[float]) -> Held:
    """Whether a gain is above 0 on the seeds."""
    mean = bootstrap_of(draws, np.mean, resamples=RESAMPLES)
    return _every([told_apart(mean, least=0.0)])


def _every(answers: Sequence[Answer]) -> Held:
    holds = False if False in answers else None if None in answers else True
    return Held(holds, answers.count(True), len(answers))


def _not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _paired_ratio(one: Draws, other: Draws) -> Estimate:
    """A fixed result is repeated for each seed of the other."""
    pairs = [_of_seeds(one), _of_seeds(other)]
    count = max(map(len, pairs))
    return times_as_much(*(each * count if len(each) == 1 else each for each in pairs))


def _of_seeds(draws: Draws) -> list[float]:
    if isinstance(draws, Estimate):
        raise ValueError("an estimate has no draws that pair by seed")
    return [draws] if isinstance(draws, float | int) else list(draws)


def _plain(draws: Draws) -> float:
    if isinstance(draws, Estimate):
        return draws.value
    return float(draws) if isinstance(draws, float | int) else float(np.mean(draws))


def _divided(one: float, other: float) -> float:
    return 1.0 if one == other else np.inf if other == 0 else one / other


def _plainly_above(one: Draws, other: Draws, factor: float) -> Answer:
    first, second = _plain(one), _plain(other)
    return None if first == second == 0 else bool(first > factor * second)


def _by_intervals(estimate: Callable[[Sequence[float]], Estimate]) -> Judge:
    def of(draws: Draws) -> Estimate:
        if isinstance(draws, Estimate):
            return draws
        return estimate([draws] if isinstance(draws, float | int) else draws)

    def above(one: Draws, other: Draws, factor: float) -> Answer:
        a, b = of(one), of(other)
        if a.low > factor * b.high:
            return True
        return None if a.high > factor * b.low else False

    return Judge(above, lambda one, other: _divided(of(one).value, of(other).value))


PAIRED = Judge(
    lambda one, other, factor: told_apart(_paired_ratio(one, other), factor),
    lambda one, other: _paired_ratio(one, other).value,
)
"""By the ratio on the same seeds, bootstrapped."""
PLAIN = Judge(_plainly_above, lambda one, other: _divided(_plain(one), _plain(other)))
"""By means, without an interval: what has no seeds, or counts."""
MEDIANS = _by_intervals(median_of)
"""Medians whose 95 % intervals do not overlap."""
MEANS = _by_intervals(lambda draws: bootstrap_of(draws, np.mean, resamples=RESAMPLES))
"""Means whose bootstrapped intervals do not overlap."""
