"""Claims: a statement of a paper, our result, and whether the two agree, so that no verdict is a
matter of taste.

The verdict of a row follows from its claims alone. An *order* claim says which of two things is
better or how a curve bends; a *value* claim is a number. If all claims hold, the row is
reproduced. If all orders hold but a number does not, it has the same shape. If some order does not
hold, it is reproduced in part, and if no claim holds, not reproduced. The tolerance of a number is
fixed before it is measured: exact for class E, within `NEAR` of the published one for class S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NEAR = 0.2
"""The share of the published value by which a statistical result may differ: mixes, seeds and
random victims are ours."""
EXACT = 1e-9
MOST_NAMED = 4
"""The most claims in a verdict, which is one line."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, compared with our result."""

    says: str
    published: str
    ours: str
    holds: bool
    order: bool = False
    """Whether the claim is an order or a shape, not a number."""

    def json(self) -> dict[str, Any]:
        return dict(vars(self))


def value(says: str, published: float, ours: float, near: float = EXACT, digits: int = 2) -> Claim:
    """A claim about a number; `near` is the share by which it may differ."""
    off = abs(ours - published)
    return Claim(
        says, _short(published, digits), _short(ours, digits), off <= near * abs(published)
    )


def order(says: str, holds: bool, ours: str = "", published: str = "yes") -> Claim:
    """A claim about which of two things is better, or how a curve bends."""
    return Claim(says, published, ours or ("yes" if holds else "no"), bool(holds), order=True)


def verdict(claims: Sequence[Claim], because: str = "") -> str:
    """The verdict in one line. `because` is the reason of a failure; it is ignored if all hold."""
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
