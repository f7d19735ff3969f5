"""What services have to say on the page: boxes of rows, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong, in a sentence; `since` in Unix seconds, 0 where not known."""

    sentence: str
    since: float = 0.0


@dataclass(frozen=True)
class PageBox:
    """What an observer of passes has to say, below what is wrong: a heading and rows."""

    head: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """A sentence under the heading."""
    wrong: str = ""
    """What of it is wrong, in a sentence; empty where nothing is."""
