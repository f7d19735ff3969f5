"""Claims: what a paper says, what we found, and whether the two agree, so that no verdict is a
matter of taste.

A row's verdict follows from its claims alone. *Order* is which of two things is better or how a
curve bends; *value* is a number. All hold: reproduced. The order holds, a number does not: same
shape. Some order does not: reproduced in part, and none holds: not reproduced. How near a number
must be is said before it is measured: exactly for class E, within `NEAR` of the published one for
class S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NEAR = 0.2
"""Share of the published value that a statistical result may be off: mixes, seeds and random
victims are ours."""
EXACT = 1e-9
MOST_NAMED = 4
"""Claims in a verdict, which is a line."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, held against ours."""

    says: str
    published: str
    ours: str
    holds: bool
    order: bool = False
    """Whether it is of an order or a shape, not of a number."""

    def json(self) -> dict[str, Any]:
        return dict(vars(self))


def value(says: str, published: float, ours: float, near: float = EXACT, digits: int = 2) -> Claim:
    """A number; `near` is the share by which it may differ."""
    off = abs(ours - published)
    return Claim(
        says, _short(published, digits), _short(ours, digits), off <= near * abs(published)
    )


def order(says: str, holds: bool, ours: str = "", published: str = "yes") -> Claim:
    """Who is better, or how a curve bends."""
    return Claim(says, published, ours or ("yes" if holds else "no"), bool(holds), order=True)


def verdict(claims: Sequence[Claim], because: str = "") -> str:
    """One line. `because` says why not, and is left out where everything holds."""
    failed = [claim for claim in claims if not claim.holds]
    if not failed:
        return "reproduced"
    what = "; ".join(claim.says for claim in failed[:MOST_NAMED])
    if len(failed) > MOST_NAMED:
        what += f" and {len(failed) - MOST_NAMED} more"
    reason = f", because {because}" if because else ""
    if any(claim.order for claim in failed):
        held = len(claims) - len(failed)
        part = (
            f"reproduced in part ({held} of {len(claims)} claims); not"
            if held
            else "not reproduced"
        )
        return f"{part}: {what}{reason}"
    return f"same shape; other numbers: {what}{reason}"


def _short(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{number:,.0f}"
