"""Order claims that are judged by their own words.

A claim is written once, as a sentence about named numbers:

    judged("2 applications: NRK faster than ARK", times)
    judged("pFTree-Ext over 70 % of pFTree on every tree", bandwidth, PLAIN)

The sentence is read: its names select the numbers, its direction is the comparison, its number is
the bound, and its last words say at how many places it must hold. So a claim cannot say one thing
and test another. A sentence that cannot be read raises ValueError.

    [context: ] NAME [never] RELATION NAME-or-number [PLACES] [, and …]

    RELATION    slower than, more than, above, …  |  faster than, less than, below, …
                over or under N % of, over or under N times  |  at most N % of  |  not above
                within N % of  |  equals  |  is better, is worse (of a gain)
                grows with …, falls with … (no second name: a place is the curve)
    PLACES      at every …  |  at most … (more than half)  |  at all but N …  |  at one … at least

Without PLACES, it must hold at all of them. `never` is: at no place.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sar_lab.research.papers.claims import RESAMPLES, Claim, order, times_as_much, told_apart
from sar_lab.research.papers.published import Quote
from sar_lab.research.statistics import Estimate, bootstrap_of, median_of

Draws = float | Sequence[float] | Estimate
"""The numbers of a place: one, those of the seeds, or what was made of them."""
Numbers = Mapping[str, Sequence[Draws]]
"""Name → the numbers of each place."""
Answer = bool | None
"""None: not told apart."""


@dataclass(frozen=True)
class Judge:
    """How two results of a place are compared."""

    above: Callable[[Draws, Draws, float], Answer]
    """Whether the first is more than so many times the second."""
    ratio: Callable[[Draws, Draws], float]


MORE = ("slower than", "worse than", "more than", "higher than", "above")
LESS = ("faster than", "better than", "less than", "lower than", "below")
_BOUND = r"(?P<bound>over|under|at most|within) (?P<number>[\d.]+) (?P<unit>% of|times)"
_RELATION = "|".join([*MORE, *LESS, "not above", "equals", _BOUND])
_PLACES = (
    r"(?:at|on) (?:(?P<every>every)|(?P<most>most)|all but (?P<but>\d+)|(?P<one>one)) (?P<what>.+)"
)


def judged(
    says: str,
    numbers: Numbers,
    judge: Judge | None = None,
    *,
    ours: str = "",
    published: str = "",
    said: Quote | None = None,
) -> Claim:
    """The claim of a sentence; `ours` are our numbers as text, by default at how many places the
    sentence holds. Results are paired by seed unless `judge` says otherwise. Raises ValueError for
    a sentence that names no numbers or no relation."""
    judge = judge or PAIRED
    each = [_clause(clause, numbers, judge, says) for clause in _clauses(says, numbers)]
    answers = [answer for answer, _, _ in each]
    _, held, places = each[0]
    text = ours or (f"at {held} of {places}" if places > 1 and len(each) == 1 else "")
    return order(says, _all(answers), text, published or "yes", said)


def _clauses(says: str, numbers: Numbers) -> list[str]:
    """The clauses after the context, which may have colons and names of its own."""
    at = [m.end() for m in re.finditer(": ", says)]
    for start in (*reversed(at), 0):
        if any(says.startswith(f"{name} ", start) for name in numbers):
            return says[start:].split(", and ")
    raise ValueError(f"{says!r} begins with none of {', '.join(numbers)}")


def _clause(clause: str, numbers: Numbers, judge: Judge, says: str) -> tuple[Answer, int, int]:
    """Whether it holds, and at how many of how many places."""
    names = "|".join(re.escape(name) for name in sorted(numbers, key=len, reverse=True))
    if found := re.fullmatch(rf"({names}) (grows|falls) with .+", clause):
        compare = operator.lt if found[2] == "grows" else operator.gt
        curves = [_curve(each) for each in numbers[found[1]]]
        return _every([all(compare(a, b) for a, b in pairwise(curve)) for curve in curves])
    if found := re.fullmatch(rf"({names}) is (better|worse)", clause):
        gains = [_gain(each) for each in numbers[found[1]]]
        return _every([g if found[2] == "better" else _not(g) for g in gains])
    found = re.fullmatch(
        rf"(?P<first>{names}) (?P<never>never )?(?P<relation>{_RELATION}) "
        rf"(?P<second>{names}|[\d.,]+)(?: {_PLACES})?",
        clause,
    )
    if not found:
        raise ValueError(f"{says!r}: {clause!r} has no relation of {', '.join(numbers)}")
    first = numbers[found["first"]]
    second = numbers.get(found["second"]) or [float(found["second"].replace(",", ""))] * len(first)
    answers = [_relation(found, a, b, judge) for a, b in zip(first, second, strict=True)]
    held = answers.count(True)
    if found["never"]:
        return not held, len(answers) - held, len(answers)
    if found["most"]:
        return 2 * held > len(answers), held, len(answers)
    if found["but"]:
        return held >= len(answers) - int(found["but"]), held, len(answers)
    if found["one"]:
        return held > 0, held, len(answers)
    return _every(answers)


def _relation(found: re.Match[str], one: Draws, other: Draws, judge: Judge) -> Answer:
    words, bound = found["relation"], found["bound"]
    if words == "equals":
        return one == other
    if words == "not above":
        return _not(judge.above(one, other, 1.0))
    if not bound:
        return judge.above(one, other, 1.0) if words in MORE else judge.above(other, one, 1.0)
    share = float(found["number"]) / (100 if found["unit"] == "% of" else 1)
    if bound == "within":
        return abs(judge.ratio(one, other) - 1) <= share
    if bound == "under":
        return judge.above(other, one, 1 / share)
    answer = judge.above(one, other, share)
    return answer if bound == "over" else _not(answer)


def _all(answers: Sequence[Answer]) -> Answer:
    return False if False in answers else None if None in answers else True


def _every(answers: Sequence[Answer]) -> tuple[Answer, int, int]:
    return _all(answers), answers.count(True), len(answers)


def _not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _curve(draws: Draws) -> Sequence[float]:
    if isinstance(draws, float | int | Estimate):
        raise ValueError("what grows or falls is a curve")
    return draws


def _gain(draws: Draws) -> Answer:
    """Whether a gain is above 0 on the seeds."""
    return told_apart(bootstrap_of(_curve(draws), np.mean, resamples=RESAMPLES), least=0.0)


def _paired_ratio(one: Draws, other: Draws) -> Estimate:
    """A fixed result is repeated for each seed of the other."""
    pairs = [[d] if isinstance(d, float | int) else list(_curve(d)) for d in (one, other)]
    count = max(map(len, pairs))
    return times_as_much(*(each * count if len(each) == 1 else each for each in pairs))


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
