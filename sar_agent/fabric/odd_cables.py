"""Cables and switches that differ from most of their like: what to repair before routes.

Cables between switches are alike if their ends are at the same two levels. Something is odd if it
is less than what most of its like have, and at most a quarter of these are: slower or narrower
cables, pairs of switches with fewer parallel cables, leaf switches with fewer ways up.

**Weak spot:** a fabric that was built uneven (an island with half the uplinks) is reported, too, as
far as the uneven part is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import rate_name

FEW = 0.25
"""The largest share of its like that may be odd."""


@dataclass(frozen=True)
class OddCables:
    """What differs, a sentence each, and the fabric with all slow cables as fast as their like."""

    sentences: tuple[str, ...]
    slow: int
    """The number of slow cables."""
    repaired: Fabric


def odd_cables(fabric: Fabric) -> OddCables:
    """What is odd among live cables between switches."""
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source, fabric.channel_target
    level = levels_of(fabric).astype(np.int64)
    low, high = np.minimum(level[source], level[target]), np.maximum(level[source], level[target])
    kind = low * 256 + high
    rate, said = fabric.channel_rate.copy(), []
    for k in np.unique(kind[live]):
        alike = live[kind[live] == k]
        usual, odd = _below_most(fabric.channel_rate[alike])
        rate[alike[odd]] = usual
        once = [c for c in alike[odd] if c < fabric.channel_reverse[c]]
        said += [
            f"{_cable(fabric, c)} is {_speed(fabric.channel_rate[c])} among {_speed(usual)}"
            for c in once
        ]
    slow = len(said)
    pair = source[live].astype(np.int64) * fabric.switches + target[live]
    pairs, first, count = np.unique(pair, return_index=True, return_counts=True)
    for k in np.unique(kind[live[first]]):
        at = np.flatnonzero(kind[live[first]] == k)
        usual, odd = _below_most(count[at])
        for i in at[odd]:
            a, b = divmod(int(pairs[i]), fabric.switches)
            if a < b:
                said.append(
                    f"{_switch(fabric, a)} and {_switch(fabric, b)} are joined by "
                    f"{_cables(count[i])}, most of their like by {usual:g}"
                )
    leaves = np.asarray(fabric.leaves)
    up = np.bincount(source[live], weights=level[target[live]] > level[source[live]],
                     minlength=fabric.switches)[leaves]  # fmt: skip
    usual, odd = _below_most(up)
    said += [
        f"{_switch(fabric, s)} has {_cables(up[i])} up, most leaf switches have {usual:g}"
        for i, s in enumerate(leaves)
        if odd[i]
    ]
    return OddCables(tuple(said), slow, replace(fabric, channel_rate=rate))


def _below_most(values: NDArray[np.generic]) -> tuple[float, NDArray[np.bool_]]:
    """The most common value, and which are less, if these are few."""
    found, count = np.unique(values, return_counts=True)
    if not len(found):
        return 0.0, np.zeros(0, np.bool_)
    usual = found[np.argmax(count)]
    odd = values < usual
    return float(usual), odd if odd.sum() <= FEW * len(values) else np.zeros(len(values), np.bool_)


def _cable(fabric: Fabric, c: int) -> str:
    a, b, back = fabric.channel_source[c], fabric.channel_target[c], fabric.channel_reverse[c]
    return (
        f"{_switch(fabric, a)}[{fabric.channel_port[c]}] – "
        f"{_switch(fabric, b)}[{fabric.channel_port[back]}]"
    )


def _switch(fabric: Fabric, s: int) -> str:
    """Its name, and its GUID where others are called so, too."""
    name = fabric.switch_name[s]
    guid = f" (0x{int(fabric.switch_guid[s]):016x})" if fabric.switch_name.count(name) > 1 else ""
    return f'"{name}"{guid}'


def _cables(count: float) -> str:
    return "1 cable" if count == 1 else f"{count:g} cables"


def _speed(rate: float) -> str:
    return rate_name(float(rate)) or f"{rate:g} Gbit/s"
