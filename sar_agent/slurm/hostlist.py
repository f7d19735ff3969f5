"""Slurm's host lists (`r[1-2]n[01-04],login-a`) expanded to names.

What `scontrol show hostnames` takes is expanded by hand, since ClusterShell's NodeSet needs 60 µs
or more a list, too slow for the first poll of a queue with 5,000 running jobs. Anything else goes
to NodeSet, which says what is wrong with it. Two things lie between it and us. It understands more
(`@group`, `*`, `a!b`), which in a host list can only be an accident, so those are refused. And
Slurm reads ranges whose ends are written with different widths (`n[01-100]` is n01 … n100), which
NodeSet refuses, so those are rewritten first.

What a user writes is `expand_few`'s: it counts the names before it makes one, by arithmetic, and
keeps nothing. Slurm's own lists are `expand`'s, which caches them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product

from sar_agent.errors import InputError, TooMany

_ALLOWED = re.compile(r"(?!-|.*[\[,]-)[A-Za-z0-9_.\-,\[\]]*")  # no name, no number starts with -
_MOST_HOSTS = 1_000_000  # a typing slip such as n[1-99999999] must not eat the machine


@lru_cache(maxsize=16384)
def expand(text: str) -> tuple[str, ...]:
    """The host names in `text`, each once, in an order that depends on the text alone.

    An empty list is an empty tuple. The answer is cached by the text, since most jobs of a poll
    were there in the poll before. Raises InputError, without file or line: the caller knows them.
    """
    by_hand = _expand_by_hand(text)
    return _expand_by_nodeset(text) if by_hand is None else by_hand


def expand_few(text: str, most: int) -> tuple[str, ...]:
    """As `expand`, for text of a user: nothing is kept, and no name is made where there are more
    than `most` (a name that is repeated counts each time). Raises InputError there, too."""
    count_names(text, most)
    names: list[str] = []
    for prefix, ranges in _parts(text):
        spans = [
            [f"{number:0{width}d}{suffix}" for width, span in one for number in span]
            for one, suffix in ranges
        ]
        names += (prefix + "".join(pieces) for pieces in product(*spans))
    return tuple(dict.fromkeys(names))


def count_names(text: str, most: int) -> int:
    """How many names the list has, repeated ones each time; no name is made. Raises InputError
    where they are more than `most`, or the text is no host list."""
    found = 0
    for _, ranges in _parts(text):
        names = 1
        for one, _ in ranges:
            names *= sum(len(span) for _, span in one)
        found += names
        if found > most:
            raise TooMany(f"{text[:60]!r} names more than {most} hosts")
    return found


_Ranges = list[tuple[list[tuple[int, range]], str]]
"""Of each bracket: (width, numbers) of its ranges, and the text behind it."""


def _parts(text: str) -> Iterator[tuple[str, _Ranges]]:
    """Each part of a list: what stands before its brackets, and these."""
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if not match or match.end() == position:
            raise InputError(f"{text[:60]!r} is not a Slurm host list")
        position = match.end()
        prefix, rest = match.groups()
        ranges: _Ranges = []
        for inside, suffix in _RANGES.findall(rest):
            spans = []
            for low, high in _RANGE.findall(inside):
                span = range(int(low), int(high or low) + 1)
                if not 0 < len(span) <= _MOST_HOSTS:
                    raise InputError(f"[{inside[:60]}] is no range of a Slurm host list")
                spans.append((len(low), span))
            ranges.append((spans, suffix))
        yield prefix, ranges


class _Names(dict[int, str]):
    """Number → name. A look-up costs much less than formatting, nearly all jobs run on nodes that
    other jobs ran on, and one string per node serves thousands of cached lists."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __missing__(self, number: int) -> str:
        name = self[number] = self._form % number
        return name


@lru_cache(maxsize=16384)
def _namer(prefix: str, width: int, suffix: str) -> Callable[[int], str]:
    return _Names(f"{prefix}%0{width}d{suffix}").__getitem__


_DIGITS = 18
"""Of a number: Slurm's names have far fewer, and Python's integers no end."""
_NAME, _SPAN = r"[A-Za-z0-9_.\-]*", rf"[0-9]{{1,{_DIGITS}}}(?:-[0-9]{{1,{_DIGITS}}})?"
_PART = re.compile(rf"(?![,\-])({_NAME})((?:\[{_SPAN}(?:,{_SPAN})*\]{_NAME})*)(?:,(?=.)|$)")
_RANGES = re.compile(r"\[([^]]+)\]([^[]*)")
_RANGE = re.compile(r"([0-9]+)-?([0-9]*)")


def _expand_by_hand(text: str) -> tuple[str, ...] | None:
    """A list of `r[1-2]n[01-04]-ib` and the like; None for anything that is odd or wrong. Raises
    InputError for a huge one."""
    hosts: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if not match or match.end() == position:
            return None
        position = match.end()
        prefix, rest = match.groups()
        names = [prefix]
        for ranges, suffix in _RANGES.findall(rest):
            made: list[str] = []
            for low, high in _RANGE.findall(ranges):
                first = int(low)
                last = int(high) if high else first
                if first > last:
                    return None
                if (last - first + 1) * len(names) + len(made) + len(hosts) > _MOST_HOSTS:
                    raise InputError(f"{text[:80]!r} names more than {_MOST_HOSTS} hosts")
                for name in names:
                    made += map(_namer(name, len(low), suffix), range(first, last + 1))
            names = made
        hosts += names
    return tuple(dict.fromkeys(hosts))


def _expand_by_nodeset(text: str) -> tuple[str, ...]:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException  # rarely needed

    if not _ALLOWED.fullmatch(text) or _LONG_NUMBER.search(text):
        raise InputError(f"{text[:80]!r} is not a Slurm host list")
    try:
        hosts = NodeSet(_BRACKET.sub(_slurm_widths, _shallow(text)), resolver=RESOLVER_NOGROUP)
    except (NodeSetException, ValueError, OverflowError) as error:  # the others are its bugs
        raise InputError(f"{text[:80]!r} is not a Slurm host list ({error})") from error
    if len(hosts) > _MOST_HOSTS:
        raise InputError(f"{text[:80]!r} names {len(hosts)} hosts, more than {_MOST_HOSTS}")
    # Interned: thousands of cached lists over the same nodes then share one string per node.
    return tuple(map(sys.intern, hosts))


_LONG_NUMBER = re.compile(rf"[0-9]{{{_DIGITS + 1}}}")
_BRACKET = re.compile(r"\[[^]\[]*\]")
_UNEVEN = re.compile(r"(\d+)-(\d+)")


_TOKEN = re.compile(r"\[[^][]*\]|,")
_SPANS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def _shallow(text: str) -> str:
    """`text`, where no part of it names too many hosts: NodeSet takes seconds to count the product
    of a dozen brackets, and has no number for it. Raises InputError."""
    names = 1
    for token in _TOKEN.findall(text):
        if token == ",":
            names = 1
            continue
        spans = _SPANS.findall(token)
        names *= sum(max(1, int(high or low) - int(low) + 1) for low, high in spans) or 1
        if names > _MOST_HOSTS:
            raise InputError(f"{text[:80]!r} names more than {_MOST_HOSTS} hosts")
    return text


def _slurm_widths(bracket: re.Match[str]) -> str:
    return _UNEVEN.sub(_even_range, bracket.group())


def _even_range(match: re.Match[str]) -> str:
    """Slurm pads every number of a range to the width of its first; NodeSet wants equal widths."""
    low, high = match.groups()
    if int(high) - int(low) > _MOST_HOSTS:  # NodeSet would build them all before len() says so
        raise InputError(f"[{match.group()}] names more than {_MOST_HOSTS} hosts")
    width = len(low)
    high = str(int(high)).zfill(width)
    if len(high) == width or not low.startswith("0"):
        return f"{low}-{high}"
    return f"{low}-{'9' * width},{10**width}-{high}"
