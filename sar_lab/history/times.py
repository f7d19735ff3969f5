"""Reads Slurm's times: `2016-12-22T07:15:12`, seconds since 1970, or `Unknown`."""

from __future__ import annotations

from datetime import UTC, datetime

NOT_YET = frozenset({"", "unknown", "none", "n/a"})
EARLIEST = 86400.0 * 366
"""Jobs of 1970 ran on a machine whose clock was not set."""


def seconds_of(text: str) -> float | None:
    """Seconds since 1970. The local time that Slurm prints is read as UTC. None
    where there is no time (yet). Raises ValueError for other text."""
    text = text.strip()
    if text.lower() in NOT_YET:
        return None
    try:
        value = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return value if 0 < value < 1e11 else None


def is_unix(text: str) -> bool:
    """Whether a text that `seconds_of` reads says a moment, not what some clock showed."""
    text = text.strip()
    return text.replace(".", "", 1).isdecimal() or bool(datetime.fromisoformat(text).tzinfo)
