"""Claims: a statement of a paper, our result, and whether the two agree, so that no verdict is a
matter of taste.

The verdict of a row follows from its claims alone. An *order* claim says which of two things is
better or how a curve bends; a *value* claim is a number. The two are counted apart:

    reproduced            every claim holds
    same shape            every order claim holds, there is at least one, and at least half of the
                          numbers hold
    reproduced in part    some claim holds
    not reproduced        no claim holds

The tolerance of a number is fixed before it is measured: exact for class E, within `NEAR` of the
published one for class S. An order over seeds is judged by pairs (`paired`): two engines route the
same seed, and the ratio of their results is bootstrapped. If its interval contains 1, the two are
*not told apart*, which is neither yes nor no; such a claim does not hold. What a row takes from its
paper as an input is no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sar_lab.research.statistics import Estimate, bootstrap_of

NEAR = 0.2
"""The share of the published value by which a statistical result may differ: mixes, seeds and
random victims are ours."""
EXACT = 1e-9
RULES = 2
"""The number of these rules; 1 judged orders by medians. A stored row keeps the number of the rules
by which it was judged."""
MOST_NAMED = 4
"""The most claims in a verdict, which is one line."""
RESAMPLES = 2000


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, compared with our result."""

    says: str
    published: str
    ours: str
    holds: bool | None
    """None: our results do not tell the two apart."""
    order: bool = False
    """Whether the claim is an order or a shape, not a number."""

    @property
    def answer(self) -> str:
        """The cell of a table."""
        return "not told apart" if self.holds is None else "yes" if self.holds else "**no**"


def value(says: str, published: float, ours: float, near: float = EXACT, digits: int = 2) -> Claim:
    """A claim about a number; `near` is the share by which it may differ."""
    off = abs(ours - published)
    return Claim(
        says, _short(published, digits), _short(ours, digits), bool(off <= near * abs(published))
    )


def order(says: str, holds: bool | None, ours: str = "", published: str = "yes") -> Claim:
    """A claim about which of two things is better, or how a curve bends."""
    words = {True: "yes", False: "no", None: "not told apart"}
    result = None if holds is None else bool(holds)
    return Claim(says, published, ours or words[result], result, order=True)


def times_as_much(slower: Sequence[float], faster: Sequence[float]) -> Estimate:
    """How many times `faster` fits into `slower`, in the geometric mean over seeds: draw i of both
    is of the same seed. Raises ValueError for draws that do not pair or are not positive."""
    if len(slower) != len(faster) or min(*slower, *faster) <= 0:
        raise ValueError("paired draws are positive, and as many on either side")
    logs = np.log(np.array(slower, float) / np.array(faster, float))
    found = bootstrap_of(logs, np.mean, resamples=RESAMPLES)
    low, middle, high = np.exp([found.low, found.value, found.high])
    return Estimate(
        float(middle), float(low), float(high), found.confidence, found.n, "paired bootstrap"
    )


def told_apart(estimate: Estimate, least: float = 1.0) -> bool | None:
    """True where the interval is above `least`, False where it is below, else None. A single
    draw tells nothing apart."""
    if estimate.n < 2 or estimate.low <= least <= estimate.high:
        return None
    return estimate.low > least


def more(
    says: str,
    one: Sequence[float],
    other: Sequence[float],
    digits: int = 2,
    what: str = "times",
) -> Claim:
    """The claim that `one` is above `other` on the same seeds."""
    ratio = times_as_much(one, other)
    return order(says, told_apart(ratio), f"{ratio.words(digits)} {what}")


def verdict(claims: Sequence[Claim], because: str = "") -> str:
    """The verdict in one line. `because` is the reason of a failure; it is ignored if all hold."""
    if not claims:
        return "an input, no claim"
    counts = _counts(claims)
    failed = [claim for claim in claims if not claim.holds]
    if not failed:
        return f"reproduced ({counts})"
    orders = [claim for claim in claims if claim.order]
    values = [claim for claim in claims if not claim.order]
    if len(failed) == len(claims):
        word = "not reproduced"
    elif (
        orders
        and all(claim.holds for claim in orders)
        and 2 * sum(bool(claim.holds) for claim in values) >= len(values)
    ):
        word = "same shape"
    else:
        word = "reproduced in part"
    parts = [f"{word} ({counts})"]
    for intro, some in (
        ("not", [claim for claim in failed if claim.holds is False]),
        ("not told apart", [claim for claim in failed if claim.holds is None]),
    ):
        if some:
            what = "; ".join(claim.says for claim in some[:MOST_NAMED])
            more = f" and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
            parts.append(f"{intro}: {what}{more}")
    return "; ".join(parts) + (f", because {because}" if because else "")


def _counts(claims: Sequence[Claim]) -> str:
    """`orders 3 of 4, values 1 of 2`; a kind without claims is left out."""
    parts = []
    for name, kind in (("orders", True), ("values", False)):
        some = [claim for claim in claims if claim.order == kind]
        if some:
            parts.append(f"{name} {sum(bool(claim.holds) for claim in some)} of {len(some)}")
    return ", ".join(parts)


def _short(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{number:,.0f}"
