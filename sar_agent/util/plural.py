"""Counts in sentences: 1 job, 2 jobs."""

from __future__ import annotations


def plural(count: object, one: str, many: str = "") -> str:
    """`1 job`, `2 jobs`; `many` where it is not `one` with an s: `1 host is`, `2 hosts are`."""
    return f"{count} {one if count in (1, '1') else many or one + 's'}"
