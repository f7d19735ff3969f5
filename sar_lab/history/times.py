"""Slurm's times: `2016-12-22T07:15:12`, seconds since 1970, `Unknown`."""

from __future__ import annotations

from datetime import UTC, datetime

NOT_YET = frozenset({"", "unknown", "none", "n/a"})
EARLIEST = 86400.0 * 366
"""A job of 1970 is one whose clock was not set."""


def seconds_of(text: str) -> float | None:
    """Seconds since 1970, as if the local time that Slurm prints were UTC: only differences count.
    None where it is no time, or none yet. Raises ValueError for other words."""
    text = text.strip()
    if text.lower() in NOT_YET:
        return None
    try:
        found = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return found if 0 < found < 1e11 else None


def day_of(seconds: float) -> str:
    """`2016-12-22 07:15`."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
