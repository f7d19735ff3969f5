"""Parts of sentences that follow from numbers: what fell, rose or stayed the same."""

from __future__ import annotations

from collections.abc import Sequence


def change(before: float, after: float, form: str) -> str:
    """`falls from 96 to 53 (−45 %)`, `rises …` or `stays at …`, decided by the printed digits."""
    old, new = f"{before:{form}}", f"{after:{form}}"
    if old == new:
        return f"stays at {old}"
    verb = "falls" if after < before else "rises"
    # A percentage to or from (nearly) zero is meaningless.
    part = f"{(after - before) / before:+.0%}".replace("-", "−") if before and after else "−100%"
    return f"{verb} from {old} to {new}" + ("" if part == "−100%" else f" ({part})")


def count_changes(pairs: Sequence[tuple[float, float]]) -> dict[str, int]:
    """How many fell, stayed the same and rose; a hundredth of a percent counts as the same."""
    counts = {"lower": 0, "same": 0, "higher": 0}
    for before, after in pairs:
        close = abs(after - before) <= 1e-4 * max(abs(before), abs(after))
        counts["same" if close else "lower" if after < before else "higher"] += 1
    return counts
