"""The part of a history that `--from` and `--until` name, by the clock of its times."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from sar_agent.errors import InputError
from sar_lab.history.job_history import JobHistory
from sar_lab.history.times import shown


def moment_of(text: str, option: str, history: JobHistory) -> float:
    """`2024-01-31` or `2024-01-31T12:00` in the history's seconds: without a zone it is what
    `JobHistory.clock` shows. Raises `InputError`, which names the option."""
    try:
        moment = datetime.fromisoformat(text)
        if history.unix:
            return moment.timestamp()  # without a zone: the reader's
        if moment.tzinfo:
            return shown(moment.timestamp())
        return moment.replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError) as error:  # OverflowError: the year 1
        raise InputError(
            f"{option} {text} is not a date",
            remedy="write, for example, 2024-01-31 or 2024-01-31T12:00",
        ) from error


def clock_words(history: JobHistory) -> str:
    """Whose clock times and hours of the history are by."""
    zone = history.clock(history.span[0]).astimezone().tzname()
    return f"your time zone, {zone}" if history.unix else "the clock of the record"


def within(history: JobHistory, begin: str | None, until: str | None) -> JobHistory:
    """The jobs that run between two dates (None: from the begin, to the end of the record), cut
    at both. Raises `InputError` for a text that is no date, and where no job runs then."""
    if begin is None and until is None:
        return history
    first, last = history.span
    low = moment_of(begin, "--from", history) if begin else -np.inf
    high = moment_of(until, "--until", history) if until else np.inf
    some = history.only((history.start < high) & (history.end > low))
    if not (low < high and low <= last and some.jobs):
        raise InputError(
            f"{history.name} has no job {between(history, low, high)}",
            remedy=f"it covers {between(history, first, last)} ({clock_words(history)})",
        )
    window = (
        max(first, low) if begin else min(history.bulk[0], high),
        min(last, high) if until else max(history.bulk[1], low),
    )
    return replace(
        some, start=np.maximum(some.start, low), end=np.minimum(some.end, high), window=window
    )


def between(history: JobHistory, begin: float, until: float) -> str:
    """`from 2024-01-01 00:00 to 2024-01-31 12:00`; an infinite side is not said."""
    sides = (("from", begin), ("to", until))
    return " ".join(f"{word} {history.day_of(at)}" for word, at in sides if np.isfinite(at))
