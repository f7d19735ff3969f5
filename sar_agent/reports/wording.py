"""Words that several reports use."""

from __future__ import annotations

from collections.abc import Sequence


def some(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: at most so many names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
