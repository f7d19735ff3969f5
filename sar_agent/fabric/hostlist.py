"""Slurm's host lists (`r[1-2]n[01-04],login-a`) expanded to names.

ClusterShell's NodeSet does the work. Three things lie between it and us. NodeSet understands more
(`@group`, `*`, `a!b`), which in a host list can only be an accident, so those are refused. Slurm
reads ranges whose ends are written with different widths (`n[01-100]` is n01 … n100, as
`scontrol show hostnames` prints), which NodeSet refuses, so those are rewritten first. And NodeSet
takes 60 µs or more a list, too slow for the first poll of a queue with 5,000 running jobs, so
what Slurm prints for nearly every job, names with at most one bracket at their end, is expanded
by hand.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from sar_agent.errors import InputError

_ALLOWED = re.compile(r"(?!-|.*[\[,]-)[A-Za-z0-9_.\-,\[\]]*")  # no name, no number starts with -
_MOST_HOSTS = 1_000_000  # a typing slip such as n[1-99999999] must not eat the machine


@lru_cache(maxsize=16384)
def expand(text: str) -> tuple[str, ...]:
    """The host names in `text`, each once, in an order that depends on the text alone.

    An empty list is an empty tuple. The answer is cached by the text, since most jobs of a poll
    were there in the poll before. Raises InputError, without file or line: the caller knows them.
    """
    if not _ALLOWED.fullmatch(text):
        raise InputError(f"{text[:80]!r} is not a Slurm host list")
    simple = _expand_simple(text)
    if simple is not None:
        return simple
    try:
        hosts = NodeSet(_BRACKET.sub(_slurm_widths, text), resolver=RESOLVER_NOGROUP)
    except NodeSetException as error:
        raise InputError(f"{text[:80]!r} is not a Slurm host list ({error})") from error
    if len(hosts) > _MOST_HOSTS:
        raise InputError(f"{text[:80]!r} names {len(hosts)} hosts, more than {_MOST_HOSTS}")
    # Interned: thousands of cached lists over the same nodes then share one string per node.
    return tuple(map(sys.intern, hosts))


_PART = re.compile(r"([A-Za-z0-9_.\-]+)(?:\[([0-9,\-]+)\])?(?:,(?=.)|$)")


def _expand_simple(text: str) -> tuple[str, ...] | None:
    """A list of `name` and `prefix[ranges]`; None for anything else, right or wrong."""
    hosts: list[str] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if not match:
            return None
        position = match.end()
        prefix, ranges = match.groups()
        if ranges is None:
            hosts.append(sys.intern(prefix))
            continue
        for part in ranges.split(","):
            low, dash, high = part.partition("-")
            if not low.isdigit() or (dash and not high.isdigit()):
                return None
            first, last = int(low), int(high or low)
            if not first <= last < first + _MOST_HOSTS:
                return None
            form = f"{prefix}%0{len(low)}d"
            hosts += [sys.intern(form % number) for number in range(first, last + 1)]
    return tuple(dict.fromkeys(hosts))


_BRACKET = re.compile(r"\[[^]\[]*\]")
_UNEVEN = re.compile(r"(\d+)-(\d+)")


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
