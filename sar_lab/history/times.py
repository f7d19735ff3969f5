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


def shown(time: float) -> float:
    """What a clock in the reader's time zone shows at a moment, read as UTC."""
    return datetime.fromtimestamp(time).replace(tzinfo=UTC).timestamp()


def row_times(start: str, end: str) -> tuple[float | None, float | None, bool]:
    """`seconds_of` both, and whether they are moments. Where only one of them is a moment, it
    becomes what the reader's clock shows then. Raises ValueError as `seconds_of` does."""
    times = [seconds_of(text) for text in (start, end)]
    kinds = {
        is_unix(text) for text, time in zip((start, end), times, strict=True) if time is not None
    }
    if len(kinds) == 2:
        times = [
            shown(time) if time is not None and is_unix(text) else time
            for text, time in zip((start, end), times, strict=True)
        ]
    return times[0], times[1], kinds == {True}
