"""Host lists in Slurm's files: read as slurmctld reads them, and written so that each version can.

From Slurm's `src/common/hostlist.c`, 22.05 to 26.05: blanks separate names as commas do, empty
items are skipped, and a name may hold any other character. In brackets each range has the width of
its first number, and numbers are of 64 bits. Text behind the last bracket is refused before 23.11.
A name outside of brackets that ends in a number above 2**64 - 1 becomes another name, so long
numbers are written in brackets, the last 18 digits of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from sar_agent.errors import InputError

SUFFIX_SINCE = (23, 11)
"""The first version that takes `n[1-2]-ib`."""
MAX_RANGE = 1 << 16
"""The most names of a range, and of the brackets before the last; Slurm's name."""
_DIGITS = 18
_TOKEN = re.compile(r"(?:\[[^\]]*\]|[^\t ,])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_SPAN = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")
_NUMBER = re.compile(r"[0-9]+$")


def read_list(text: str) -> tuple[tuple[str, ...], str]:
    """(the names, each once; the first item with text behind its last bracket, "" if none has).
    Raises `InputError`, without file or line, for a list that no version reads."""
    names: list[str] = []
    suffixed = ""
    for token in _TOKEN.findall(text):
        first, *rest = _BRACKETS.split(token)
        texts = [first, *rest[1::2]]
        if any("[" in part or "]" in part for part in texts):
            raise InputError(f"{token[:60]!r} is not a Slurm host list: a bracket is missing")
        if not rest:
            names.append(_as_slurm_reads(token))
            continue
        suffixed = suffixed or (token if rest[-1] else "")
        spans = [_numbers(inside) for inside in rest[::2]]
        most = MAX_RANGE * MAX_RANGE
        for span in spans:
            most //= max(1, len(span))
        if not most or len(names) > MAX_RANGE:
            raise InputError(f"{token[:60]!r} names too many for Slurm")
        for numbers in product(*spans):
            pairs = zip(numbers, rest[1::2], strict=True)
            names.append(first + "".join(number + behind for number, behind in pairs))
    return tuple(dict.fromkeys(names)), suffixed


def _numbers(inside: str) -> list[str]:
    found: list[str] = []
    for item in inside.split(","):
        match = _SPAN.fullmatch(item)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or not low <= high < low + MAX_RANGE or len(found) > MAX_RANGE:
            raise InputError(f"[{inside[:60]}] is not a range of a Slurm host list")
        found += (f"{number:0{len(match[1])}d}" for number in range(low, high + 1))
    return found


def _as_slurm_reads(name: str) -> str:
    number = _NUMBER.search(name)
    if number is None or len(number[0]) < 20:
        return name
    return name[: number.start()] + f"{min(int(number[0][:4000]), 2**64 - 1):0{len(number[0])}d}"


def write_list(names: Sequence[str]) -> str:
    """The list of these names: only last numbers are folded, so that each version takes it. The
    names hold no blank, comma or bracket."""
    folded: dict[str, list[tuple[int, str]]] = {}
    for name in dict.fromkeys(names):
        number = _NUMBER.search(name)
        digits = number[0][-_DIGITS:] if number else ""
        numbers = folded.setdefault(name.removesuffix(digits) if digits else f"{name},", [])
        numbers.append((int(digits or 0), digits))
    return ",".join(_folded(prefix, numbers) for prefix, numbers in folded.items())


def _folded(prefix: str, numbers: list[tuple[int, str]]) -> str:
    """`n[01-04,7]`; each range is of numbers that follow each other, as wide as its first. A prefix
    that ends in a comma is a name without a number."""
    if prefix.endswith(","):
        return prefix[:-1]
    spans: list[tuple[str, int]] = []
    for value, digits in sorted(numbers, key=lambda one: (one[0], len(one[1]))):
        if spans:
            low, last = spans[-1]
            if f"{last + 1:0{len(low)}d}" == digits and value - int(low) < MAX_RANGE:
                spans[-1] = low, value
                continue
        spans.append((digits, value))
    if len(spans) == 1 and int(spans[0][0]) == spans[0][1] and not prefix[-1:].isdigit():
        return prefix + spans[0][0]
    parts = (low if int(low) == last else f"{low}-{last:0{len(low)}d}" for low, last in spans)
    return f"{prefix}[{','.join(parts)}]"
