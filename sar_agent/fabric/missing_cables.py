"""Cables between switches that most of their like have: which two switches, and which free ports.

Two switches with fewer parallel cables than most pairs of these levels lack some, if each of them
has more to another switch: a switch that has one cable everywhere was built so. A switch with fewer
cables up than most of its level lacks those to switches above that most of its neighbours reach;
neighbours reach half of what it reaches.

The ports named are free, and first those that the pattern of the other cables shows: the port by
which neighbours reach the same switch, and the port by which other switches reach this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from sar_agent.fabric.cable_names import switch_words
from sar_agent.fabric.model import I64, Fabric
from sar_agent.fabric.switch_names import short_switch_name
from sar_agent.fabric.unlike import Odd, below_most, counted

_MOST = 0.75
"""The share of a switch's neighbours that reach what it lacks."""
_FREE_SHOWN, _MISSING_SHOWN = 3, 3


def missing_cables(fabric: Fabric, level: I64) -> Iterator[Odd]:
    """A sentence on each pair and each switch. `level`: as from `levels_of`."""
    cabling = _Cabling(fabric, level)
    yield from _thin_pairs(cabling)
    yield from _missing_pairs(cabling)


class _Cabling:
    """Live cables between switches, by pairs."""

    def __init__(self, fabric: Fabric, level: I64) -> None:
        self.fabric, self.level = fabric, level
        self.ports: dict[int, dict[int, list[int]]] = {}
        """Of each switch, those that it is cabled to, with its own ports."""
        for c in np.flatnonzero(fabric.channel_up).tolist():
            of = self.ports.setdefault(int(fabric.channel_source[c]), {})
            of.setdefault(int(fabric.channel_target[c]), []).append(int(fabric.channel_port[c]))

    @cached_property
    def used(self) -> dict[int, set[int]]:
        """The ports of each switch that have a live cable."""
        used = {s: {p for of in to.values() for p in of} for s, to in self.ports.items()}
        for t in np.flatnonzero(self.fabric.terminal_up).tolist():
            used.setdefault(int(self.fabric.terminal_switch[t]), set()).add(
                int(self.fabric.terminal_switch_port[t])
            )
        return used

    def above(self, s: int) -> dict[int, list[int]]:
        """The switches above `s`, with its ports to them."""
        return {t: p for t, p in self.ports.get(s, {}).items() if self.level[t] > self.level[s]}

    def ways_between(self, a: int, b: int) -> tuple[int, ...]:
        """Channels from a to b."""
        table = self.fabric.channel_by_port
        return tuple(int(table[a, port]) for port in self.ports.get(a, {}).get(b, ()))

    def free_words(self, a: int, b: int, most: int = _FREE_SHOWN) -> str:
        """`free: A[5], B[7]`: ports for one more cable."""
        ends = (self._free(a, b, most), self._free(b, a, most))
        if not all(ends):
            return "no port is free"
        words = (
            f"{short_switch_name(self.fabric.switch_name[s])}[{','.join(map(str, of))}]"
            for s, of in zip((a, b), ends, strict=True)
        )
        return f"free: {', '.join(words)}"

    def _free(self, s: int, other: int, most: int) -> list[int]:
        """Free ports of `s` for a cable to `other`, those of the pattern first; where the pattern
        shows one, that one alone."""
        used = self.used.get(s, set())
        alike = [t for t in self.ports.get(other, {}) if t != s and self.level[t] == self.level[s]]
        shown = Counter(port for t in alike for port in self.ports[t][other])
        free = [p for p in range(1, int(self.fabric.switch_ports[s]) + 1) if p not in used]
        fits = [port for port, _ in shown.most_common() if port in free]
        if fits and shown[fits[0]] > len(alike) / 2:
            return fits[:1]
        return free[:most]


def _thin_pairs(cabling: _Cabling) -> Iterator[Odd]:
    """Pairs of switches with fewer parallel cables than most."""
    fabric, level = cabling.fabric, cabling.level
    pairs = [(a, b) for a, of in cabling.ports.items() for b in of if (level[a], a) < (level[b], b)]
    kinds: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for a, b in pairs:
        low, high = sorted((int(level[a]), int(level[b])))
        kinds.setdefault((low, high), []).append((a, b))
    for alike in kinds.values():
        count = np.array([len(cabling.ports[a][b]) for a, b in alike])
        best: dict[int, list[int]] = {}
        for (a, b), n in zip(alike, count.tolist(), strict=True):
            best.setdefault(a, []).append(n)
            best.setdefault(b, []).append(n)
        usual, odd = below_most(count)
        for i in np.flatnonzero(odd).tolist():
            a, b = alike[i]
            if any(len(best[s]) > 1 and max(best[s]) <= count[i] for s in (a, b)):
                continue  # it has no more to any other
            sentence = (
                f"{switch_words(fabric, a)} and {switch_words(fabric, b)} are joined by "
                f"{counted(count[i], 'cable')}, most of their like by {usual:g} "
                f"({cabling.free_words(a, b)})"
            )
            ways = (*cabling.ways_between(a, b), *cabling.ways_between(b, a))
            rank = (1, float(count[i] / usual))
            yield Odd(sentence, ways, switches=(a, b), rank=rank)


def _missing_pairs(cabling: _Cabling) -> Iterator[Odd]:
    """Switches with fewer cables up than most of their level, and what they do not reach."""
    fabric, level = cabling.fabric, cabling.level
    above = {s: cabling.above(s) for s in range(fabric.switches) if fabric.switch_up[s]}
    for depth in sorted({int(level[s]) for s, of in above.items() if of}):
        these = [s for s, of in above.items() if level[s] == depth and of]
        count = np.array([sum(map(len, above[s].values())) for s in these])
        usual, odd = below_most(count)
        for i in np.flatnonzero(odd).tolist():
            s = these[i]
            missing = _not_reached(s, these, above)
            if not missing:
                continue
            most = "leaf switches" if depth == 0 else "switches of its level"
            told = "; ".join(
                f"none to {switch_words(fabric, t)} ({cabling.free_words(s, t)})"
                for t in missing[:_MISSING_SHOWN]
            )
            more = len(missing) - _MISSING_SHOWN
            sentence = (
                f"{switch_words(fabric, s)} has {counted(count[i], 'cable')} up, most {most} have "
                f"{usual:g}: {told}" + (f"; and {more} more" if more > 0 else "")
            )
            ways = tuple(c for t in above[s] for c in cabling.ways_between(s, t))
            rank = (1, float(count[i] / usual))
            yield Odd(sentence, ways, switches=(s, *missing), rank=rank)


def _not_reached(s: int, these: Iterable[int], above: dict[int, dict[int, list[int]]]) -> list[int]:
    """Switches above that most neighbours of `s` reach, and `s` does not; ascending."""
    own = above[s].keys()
    near = [t for t in these if t != s and len(own & above[t].keys()) * 2 >= len(own)]
    reach = Counter(up for t in near for up in above[t])
    return sorted(up for up, n in reach.items() if up not in own and n > _MOST * len(near))
