"""ORCS's rules once more, slowly: dictionaries, one message after the other."""

from __future__ import annotations

import itertools
from collections import Counter

from sar_lab.research.orcs.network import NONE, Network

Pair = tuple[int, int]


def way(network: Network, source: int, destination: int) -> list[int]:
    """Links from host to host."""
    links, at = list[int](), int(network.place[source])
    while at != network.place[destination]:
        first = int(network.enter[source])
        link = first if first != NONE and not links else int(network.hop[at, destination])
        assert link != NONE and len(links) < 50
        links.append(link)
        at = int(network.head[link])
    return links


def congestions(network: Network, hosts: list[int], level: list[Pair]) -> list[int]:
    """For each pair of ranks the messages on the fullest link of its way."""
    ways = [way(network, hosts[a], hosts[b]) for a, b in level]
    load = Counter(itertools.chain(*ways))
    return [max(load[link] for link in links) for links in ways]


def longest_delay(network: Network, hosts: list[int], levels: list[list[Pair]], k: int) -> int:
    """A vertex for each message and end, chained as ORCS chains them; the longest path."""
    longest = 0
    before: dict[int, int] = {}
    for level in levels:
        weights = congestions(network, hosts, level)
        now: dict[int, int] = {}
        senders: set[int] = set()
        for (a, b), weight in zip(level, weights, strict=True):
            if a >= k or b >= k:
                continue
            end = weight + (0 if a in senders else before.get(a, 0))
            senders.add(a)
            now.setdefault(b, end)
            longest = max(longest, end)
        before = now
    return longest
