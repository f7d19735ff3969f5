"""Patterns of names: `ai400x-*`, `login?`, and numbers in brackets as Slurm writes them.

A shell reads `mlx5_[0-11]` as `mlx5_0` and `mlx5_1`; everyone who writes it means 0 to 11. So a
bracket of numbers with a comma or a dash, of three digits, or with a zero first, is a list of
numbers, as in Slurm's host lists: each range has the width of its first number. Every other bracket
is the shell's: `[12]` is 1 or 2.

**Weak spot:** `n[12]` is n12 in a host list. Commands that know the hosts read it so
(`reports/places.py`); settings are read before the hosts are known, and there it is a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

from sar_agent.fabric.by_host import short_name

_NUMBERS = re.compile(r"\[((?:[0-9]{1,18}[,-])+[0-9]{1,18}|0[0-9]{1,17}|[0-9]{3,18})\]")
_COMMA = re.compile(r",(?![^\[]*\])")
"""Between the parts of a list, outside brackets."""
_SPAN = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns is the whole name."""
    return any(_matches_one(name, pattern) for pattern in patterns)


def between_commas(text: str) -> list[str]:
    """The parts of `n[1,2],n7`: n[1,2] and n7."""
    return _COMMA.split(text)


def matches_host(host: str, patterns: Sequence[str]) -> bool:
    """As `matches`, for hosts: in any case, with or without a domain; a pattern may be a list,
    `n[1-3],n7`."""
    parts = [part for pattern in patterns for part in between_commas(pattern)]
    if matches(host, parts):
        return True
    return bool(parts) and matches(short_name(host), [short_name(part) for part in parts])


def _matches_one(name: str, pattern: str) -> bool:
    regex, lists = _compiled(pattern)
    match = regex.match(name)
    return match is not None and all(
        any(
            low <= int(digits) <= high and digits == f"{int(digits):0{width}d}"
            for width, low, high in spans
        )
        for digits, spans in zip(match.groups(), lists, strict=True)
    )


_Spans = list[tuple[int, int, int]]
"""(width, first, last) of the ranges of a bracket."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[re.Pattern[str], list[_Spans]]:
    """A regular expression with a group for each list of numbers, and these lists."""
    regex, lists = "", list[_Spans]()
    for place, part in enumerate(_NUMBERS.split(pattern)):
        if place % 2 == 0:
            # fnmatch.translate is (?s:…)\Z: the group without its end.
            regex += translate(part).removesuffix(r"\Z").removesuffix(r"\z")
            continue
        spans = _spans(part)
        lists.append(spans)
        widths = [max(width, len(str(end))) for width, *ends in spans for end in ends]
        regex += f"([0-9]{{{min(widths)},{max(widths)}}})"
    return re.compile(rf"{regex}\Z"), lists


def _spans(text: str) -> _Spans:
    found = []
    for item in text.split(","):
        match = _SPAN.fullmatch(item)
        if match:  # 1-2-3 is no range and names nothing
            found.append((len(match[1]), int(match[1]), int(match[2] or match[1])))
    return found or [(1, 1, 0)]
