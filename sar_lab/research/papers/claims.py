"""Claims: a statement of a paper, our result, and whether the two agree, so that no verdict is a
matter of taste.

A claim points to a quote (`published.toml`). What a paper prints is a claim of the paper, an
erratum is one, too, and the verdict says so; what only follows from the print, or is a statement of
ours, is a test of ours and counts apart. The verdict of a row follows from its claims alone. An
*order* claim says which of two things is better or how a curve bends; a *value* claim is a number.
The two are counted apart:

    reproduced            every claim holds
    same shape            every order claim holds, there is at least one, and at least half of the
                          numbers hold
    reproduced in part    some claim holds
    not reproduced        no claim holds

The tolerance of a number is fixed before it is measured: exact for class E, within `NEAR` of the
published one for class S. Where that would let 1, no effect, pass for a ratio, what is compared is
how far the ratio is from 1. An order over seeds is judged by pairs (`paired`): two engines route
the same seed, and the ratio of their results is bootstrapped. If its interval contains 1, the two
are *not told apart*, which is neither yes nor no; such a claim does not hold. What a row takes from
its paper as an input is no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sar_lab.research.papers.published import ERRATUM, THEIRS, Quote
from sar_lab.research.statistics import Estimate, bootstrap_of

NEAR = 0.2
"""The share of the published value by which a statistical result may differ: mixes, seeds and
random victims are ours."""
EXACT = 1e-9
RULES = 4
"""The number of these rules; 1 judged orders by medians, 2 counted what no paper prints, 3
compared ratios near 1 as any number. A stored row keeps the number of the rules by which it was
judged."""
OURS = "ours"
"""The kind of a claim without a quote."""
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
    said: str = ""
    """The name of the quote."""
    kind: str = OURS
    """Of the quote."""

    @property
    def answer(self) -> str:
        """The cell of a table."""
        return "not told apart" if self.holds is None else "yes" if self.holds else "**no**"


def value(
    says: str,
    published: float | Quote,
    ours: float,
    near: float = EXACT,
    digits: int = 2,
    said: Quote | None = None,
    ratio: bool = False,
) -> Claim:
    """A claim about a number, that of a quote or one that follows from it (`said`); `near` is the
    share by which it may differ. Of a `ratio` that 1 would satisfy, it is the share of its distance
    from 1."""
    said = published if isinstance(published, Quote) else said
    number = published.number if isinstance(published, Quote) else published
    base = 1.0 if ratio and abs(number - 1) <= near * abs(number) else 0.0
    holds = bool(abs(ours - number) <= near * abs(number - base))
    return _claim(says, _short(number, digits), _short(ours, digits), holds, False, said)


def order(
    says: str, holds: bool | None, ours: str = "", published: str = "yes", said: Quote | None = None
) -> Claim:
    """A claim about which of two things is better, or how a curve bends."""
    words = {True: "yes", False: "no", None: "not told apart"}
    result = None if holds is None else bool(holds)
    return _claim(says, published, ours or words[result], result, True, said)


def _claim(
    says: str, published: str, ours: str, holds: bool | None, is_order: bool, said: Quote | None
) -> Claim:
    name, kind = (said.name, said.kind) if said else ("", OURS)
    return Claim(says, published, ours, holds, is_order, name, kind)


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
    least: float = 1.0,
) -> Claim:
    """The claim that `one` is more than `least` times `other` on the same seeds."""
    ratio = times_as_much(one, other)
    return order(says, told_apart(ratio, least), f"{ratio.words(digits)} {what}")


def verdict(claims: Sequence[Claim], because: str = "", how: str = "") -> str:
    """The verdict in one line. `because` is the reason of a failure; it is ignored if all hold.
    `how` qualifies it: "with our exact shift", "fitted"."""
    if not claims:
        return "an input, no claim"
    theirs = [claim for claim in claims if claim.kind in THEIRS]
    ours = [claim for claim in claims if claim.kind not in THEIRS]
    counted = theirs or ours
    failed = [claim for claim in counted if not claim.holds]
    word = _word(theirs, failed) if theirs else "statements of ours"
    errata = "with an erratum" if any(claim.kind == ERRATUM for claim in theirs) else ""
    word = ", ".join(part for part in (word, how, errata) if part)
    parts = [f"{word} ({counts(counted)})"]
    for intro, some in (
        ("not", [claim for claim in failed if claim.holds is False]),
        ("not told apart", [claim for claim in failed if claim.holds is None]),
    ):
        if some:
            what = "; ".join(claim.says for claim in some[:MOST_NAMED])
            more = f" and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
            parts.append(f"{intro}: {what}{more}")
    if theirs and ours:
        parts.append(f"our tests: {sum(bool(claim.holds) for claim in ours)} of {len(ours)}")
    return "; ".join(parts) + (f", because {because}" if because and failed else "")


def _word(claims: Sequence[Claim], failed: Sequence[Claim]) -> str:
    values = [claim for claim in claims if not claim.order]
    if not failed:
        return "reproduced"
    if len(failed) == len(claims):
        return "not reproduced"
    orders_hold = len(values) < len(claims) and not any(claim.order for claim in failed)
    if orders_hold and 2 * sum(bool(claim.holds) for claim in values) >= len(values):
        return "same shape"
    return "reproduced in part"


def counts(claims: Sequence[Claim]) -> str:
    """`orders 3 of 4, values 1 of 2`; a kind without claims is left out."""
    parts = []
    for name, kind in (("orders", True), ("values", False)):
        some = [claim for claim in claims if claim.order == kind]
        if some:
            parts.append(f"{name} {sum(bool(claim.holds) for claim in some)} of {len(some)}")
    return ", ".join(parts)


def _short(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{number:,.0f}"
