"""Expands Slurm's host lists (`r[1-2]n[01-04],login-a`) to names.

Lists that `scontrol show hostnames` accepts are expanded here, since ClusterShell's NodeSet needs
60 µs or more per list, too slow for the first poll of a queue with 5,000 running jobs. Other lists
are passed to NodeSet, which explains what is wrong with them, after two adjustments. NodeSet
accepts more (`@group`, `*`, `a!b`), which in a host list can only be an accident, so these are
refused. And Slurm accepts ranges whose ends have different widths (`n[01-100]` is n01 … n100),
which NodeSet refuses, so these are rewritten.

Lists that users write go to `expand_few`: it counts the names by arithmetic before it creates one,
and caches nothing. Slurm's own lists go to `expand`, which caches them.
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

    An empty list is an empty tuple. Results are cached by the text, since most jobs of a poll were
    in the poll before. Raises `InputError` without file or line: the caller knows them.
    """
    by_hand = _expand_by_hand(text)
    return _expand_by_nodeset(text) if by_hand is None else by_hand


def expand_few(text: str, most: int) -> tuple[str, ...]:
    """As `expand`, for a user's text: nothing is cached, and no name is created where there are
    more than `most` (repeated names count each time). Raises `InputError` there, too."""
    count_names(text, most)
    names: list[str] = []
    for prefix, ranges in _parts(text):
        spans = [
            [f"{number:0{width}d}{suffix}" for width, span in bracket for number in span]
            for bracket, suffix in ranges
        ]
        names += (prefix + "".join(pieces) for pieces in product(*spans))
    return tuple(dict.fromkeys(names))


def count_names(text: str, most: int) -> int:
    """The number of names in the list, repeated names counted each time; no name is created. Raises
    `InputError` where they are more than `most`, or the text is not a host list."""
    total = 0
    for _, ranges in _parts(text):
        names = 1
        for bracket, _ in ranges:
            names *= sum(len(span) for _, span in bracket)
        total += names
        if total > most:
            raise TooMany(f"{text[:60]!r} names more than {most} hosts")
    return total


_Ranges = list[tuple[list[tuple[int, range]], str]]
"""For each bracket: (width, numbers) of its ranges, and the text behind it."""


def _parts(text: str) -> Iterator[tuple[str, _Ranges]]:
    """The parts of a list: the text before the brackets, and the brackets."""
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
                    raise InputError(f"[{inside[:60]}] is not a range of a Slurm host list")
                spans.append((len(low), span))
            ranges.append((spans, suffix))
        yield prefix, ranges


class _Names(dict[int, str]):
    """Number → name. A look-up takes much less time than formatting, nearly all jobs run on nodes
    that other jobs ran on, and one string per node serves thousands of cached lists."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __missing__(self, number: int) -> str:
        name = self[number] = self._form % number
        return name


@lru_cache(maxsize=16384)
def _namer(prefix: str, width: int, suffix: str) -> Callable[[int], str]:
    return _Names(f"{prefix}%0{width}d{suffix}").__getitem__


_DIGITS = 18
"""The most digits of a number: Slurm's names have far fewer, and Python's integers no limit."""
_NAME, _SPAN = r"[A-Za-z0-9_.\-]*", rf"[0-9]{{1,{_DIGITS}}}(?:-[0-9]{{1,{_DIGITS}}})?"
_PART = re.compile(rf"(?![,\-])({_NAME})((?:\[{_SPAN}(?:,{_SPAN})*\]{_NAME})*)(?:,(?=.)|$)")
_ONE_BRACKET = re.compile(rf"(?!-)({_NAME})\[({_SPAN}(?:,{_SPAN})*)\](?:,(?=.)|$)")
_RANGES = re.compile(r"\[([^]]+)\]([^[]*)")
_RANGE = re.compile(r"([0-9]+)-?([0-9]*)")


def _expand_by_hand(text: str) -> tuple[str, ...] | None:
    """The names of a list such as `r[1-2]n[01-04]-ib`; None for anything unusual or wrong. Raises
    `InputError` for a huge list."""
    hosts: list[str] = []
    position = 0
    while position < len(text):
        if one := _ONE_BRACKET.match(text, position):  # nearly all parts; takes half the time
            position = one.end()
            if not _add_names(one[1], one[2], "", hosts):
                return None
            continue
        match = _PART.match(text, position)
        if not match or match.end() == position:
            return None
        position = match.end()
        prefix, rest = match.groups()
        _shallow(match[0].rstrip(","))
        names = [prefix]
        for ranges, suffix in _RANGES.findall(rest):
            expanded: list[str] = []
            for name in names:
                if not _add_names(name, ranges, suffix, expanded):
                    return None
            names = expanded
        hosts += names
        if len(hosts) > _MOST_HOSTS:
            raise InputError(f"{text[:80]!r} names more than {_MOST_HOSTS} hosts")
    return tuple(dict.fromkeys(hosts))


def _add_names(prefix: str, ranges: str, suffix: str, hosts: list[str]) -> bool:
    """Appends the names of `prefix[ranges]suffix`; returns False if a range is empty. Raises
    `InputError` for a huge list."""
    width, name = 0, None
    for span in ranges.split(","):
        low, _, high = span.partition("-")
        if name is None or len(low) != width:
            width = len(low)
            name = _namer(prefix, width, suffix)
        if not high:
            hosts.append(name(int(low)))
            continue
        first, end = int(low), int(high) + 1
        if first >= end:
            return False
        if end - first + len(hosts) > _MOST_HOSTS:
            raise InputError(f"{prefix}[{ranges[:80]}] names more than {_MOST_HOSTS} hosts")
        hosts += map(name, range(first, end))
    if len(hosts) > _MOST_HOSTS:
        raise InputError(f"{prefix}[{ranges[:80]}] names more than {_MOST_HOSTS} hosts")
    return True


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
    """`text` itself. Raises `InputError` where a part of it names too many hosts: NodeSet takes
    seconds to count the product of a dozen brackets, and its count overflows."""
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
    """Slurm pads every number of a range to the width of its first; NodeSet needs equal widths."""
    low, high = match.groups()
    if int(high) - int(low) > _MOST_HOSTS:  # NodeSet would create all of them before len() is known
        raise InputError(f"[{match.group()}] names more than {_MOST_HOSTS} hosts")
    width = len(low)
    high = str(int(high)).zfill(width)
    if len(high) == width or not low.startswith("0"):
        return f"{low}-{high}"
    return f"{low}-{'9' * width},{10**width}-{high}"
