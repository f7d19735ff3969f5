"""Expands Slurm's host lists (`r[1-2]n[01-04],login-a`) to names.

One parser takes what `scontrol show hostnames` accepts, and counts names by arithmetic before it
creates them. Ranges may have ends of different widths: `n[01-100]` is n01 … n100 to Slurm. Names
may hold `+`, `:` and `@`, which Slurm takes in NodeName=.

Slurm's own lists go to `expand`, which caches them, those that users write to `expand_few`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from math import prod

from sar_agent.errors import InputError, TooMany
from sar_agent.util.plural import plural

_MOST_HOSTS = 1_000_000  # a typing slip such as n[1-99999999] must not eat the machine


@lru_cache(maxsize=16384)
def expand(text: str) -> tuple[str, ...]:
    """The host names in `text`, each once, in an order that depends on the text alone.

    An empty list is an empty tuple. Results are cached by the text, since most jobs of a poll were
    in the poll before; they share the names of nodes. Raises `InputError` without file or line: the
    caller knows them.
    """
    return tuple(map(sys.intern, expand_few(text, _MOST_HOSTS)))


def expand_few(text: str, most: int) -> tuple[str, ...]:
    """As `expand`, for a user's text: nothing is cached, and no name is created where there are
    more than `most` (repeated names count each time). Raises `InputError` there, too."""
    count_names(text, most)
    names: list[str] = []
    for prefix, brackets in _parts(text):
        heads = [prefix]
        for spans, suffix in brackets:
            heads = [
                f"{head}{number:0{width}d}{suffix}"
                for head in heads
                for width, span in spans
                for number in span
            ]
        names += heads
    return tuple(dict.fromkeys(names))


def count_names(text: str, most: int) -> int:
    """The number of names in the list, repeated names counted each time; no name is created. Raises
    `InputError` where they are more than `most`, or the text is not a host list."""
    total = 0
    for _, brackets in _parts(text):
        total += prod(sum(len(span) for _, span in spans) for spans, _ in brackets)
        if total > most:
            raise TooMany(f"{text[:60]!r} names more than {plural(most, 'host')}")
    return total


_Brackets = list[tuple[list[tuple[int, range]], str]]
"""For each bracket: (width, numbers) of its ranges, and the text behind it."""


def _parts(text: str) -> Iterator[tuple[str, _Brackets]]:
    """The parts of a list: the text before the brackets, and the brackets."""
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if not match or match.end() == position:
            raise InputError(f"{text[:60]!r} is not a Slurm host list{_reason(text)}")
        position = match.end()
        prefix, rest = match.groups()
        brackets: _Brackets = []
        for inside, suffix in _BRACKET.findall(rest):
            spans = []
            for part in inside.split(","):
                low, _, high = part.partition("-")
                span = range(int(low), int(high or low) + 1)
                if not span:
                    raise InputError(f"[{inside[:60]}] is not a range of a Slurm host list")
                spans.append((len(low), span))
            brackets.append((spans, suffix))
        yield prefix, brackets


_DIGITS = 18
"""The most digits of a number: Slurm's names have far fewer, and Python's integers no limit."""
_NAME, _SPAN = r"[A-Za-z0-9_.\-+:@]*", rf"[0-9]{{1,{_DIGITS}}}(?:-[0-9]{{1,{_DIGITS}}})?"
_PART = re.compile(rf"(?![,\-@])({_NAME})((?:\[{_SPAN}(?:,{_SPAN})*\]{_NAME})*)(?:,(?=.)|$)")
_BRACKET = re.compile(r"\[([^]]+)\]([^[]*)")


def _reason(text: str) -> str:
    """What is wrong with a list, in brackets; empty where that is not known."""
    if text.count("[") != text.count("]"):
        return " (a bracket is missing)"
    if "[]" in text:
        return " (empty brackets)"
    if re.search(r",,|^,|,$", text):
        return " (an item between commas is empty)"
    return ""
