"""A mapping by host name that also answers to a host's other spellings.

Slurm may call a node `n001.cluster.site`, the fabric `n001`, or the other way round, or `N001`.
What is asked for is looked up as it is first, then without regard to case and domain, then without
the `-ib0` of the InfiniBand interface, if only one host is called so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, TypeVar

_T = TypeVar("_T")


def short_name(host: str) -> str:
    """`N001.cluster` to `n001`; an address stays whole."""
    return host.lower() if host.replace(".", "").isdigit() else host.lower().partition(".")[0]


def _node_name(host: str) -> str:
    """`n001-ib0.site` to `n001`."""
    return re.sub(r"-ib[0-9]*$", "", short_name(host)) or short_name(host)


class ByHost(dict[str, _T]):
    """Keys, in order and as they are iterated, are the fabric's own names."""

    @cached_property
    def _short(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for host in self:
            name = short_name(host)
            names[name] = "" if name in names else host  # empty: several are called so
        return names

    @cached_property
    def _whole(self) -> dict[str, str]:
        return {host.lower(): host for host in self}

    @cached_property
    def _nodes(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for host in self:
            name = _node_name(host)
            names[name] = "" if name in names else host
        return names

    def name_of(self, host: str) -> str | None:
        """The fabric's name of a host; None where it has none, or several."""
        if dict.__contains__(self, host):
            return host
        if (name := self._short.get(short_name(host))) is not None:
            return name or self._whole.get(host.lower())
        return self._nodes.get(_node_name(host)) or None

    def without(self, lists: Iterable[Iterable[str]]) -> frozenset[str]:
        """The hosts of these lists that are not here, under no spelling."""
        hosts: set[str] = set().union(*lists)
        if self.keys() >= hosts:
            return frozenset()
        return frozenset(host for host in hosts if host not in self)

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and self.name_of(host) is not None

    def __missing__(self, host: str) -> _T:
        if (name := self.name_of(host)) is None:
            raise KeyError(host)
        return self[name]

    def get(self, host: str, default: Any = None) -> Any:
        """As of any dictionary."""
        name = self.name_of(host)
        return default if name is None else self[name]
