"""Words that several reports use."""

from __future__ import annotations

import time
from collections.abc import Sequence


def some(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: at most so many names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def job_words(job: str, user: str) -> str:
    """`job 7 (ada)`."""
    return f"job {job}" + (f" ({user})" if user else "")


def moment(at: float) -> str:
    """Local time, from Unix seconds."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
