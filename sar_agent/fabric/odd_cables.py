"""Cables and switches that differ from most of their like: what to repair before routes.

Cables between switches are alike if their ends are at the same two levels. Something is odd if it
is less than what most of its like have, and at most a quarter of these are: slower or narrower
cables, pairs of switches with fewer parallel cables, leaf switches with fewer ways up, slower
cables of hosts, and hosts with fewer ports.

**Weak spot:** a fabric that was built uneven (an island with half the uplinks) is reported, too, as
far as the uneven part is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.levels import levels_of
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import speed_words

ODD_SHARE = 0.25
"""The largest share of its like that may be odd."""


@dataclass(frozen=True)
class Odd:
    """One thing that differs, and the cables that it concerns."""

    sentence: str
    channels: tuple[int, ...] = ()
    terminals: tuple[int, ...] = ()


@dataclass(frozen=True)
class OddCables:
    """What differs, and the fabric with all slow cables between switches as fast as their like."""

    odd: tuple[Odd, ...]
    slow: int
    """The number of slow cables between switches, which come first."""
    repaired: Fabric

    @property
    def sentences(self) -> tuple[str, ...]:
        """One for each."""
        return tuple(each.sentence for each in self.odd)


def odd_cables(fabric: Fabric) -> OddCables:
    """What is odd among live cables."""
    live = np.flatnonzero(fabric.channel_up)
    source, target = fabric.channel_source, fabric.channel_target
    level = levels_of(fabric).astype(np.int64)
    low, high = np.minimum(level[source], level[target]), np.maximum(level[source], level[target])
    kind = low * 256 + high
    rate, found = fabric.channel_rate.copy(), list[Odd]()
    for k in np.unique(kind[live]):
        alike = live[kind[live] == k]
        usual, odd = _below_most(fabric.channel_rate[alike])
        rate[alike[odd]] = usual
        found += [
            Odd(
                f"{cable_name(fabric, c)} is {speed_words(fabric.channel_rate[c])} among "
                f"{speed_words(usual)}",
                (int(c),),
            )
            for c in alike[odd]
            if c < fabric.channel_reverse[c]
        ]
    slow = len(found)
    pair = source[live].astype(np.int64) * fabric.switches + target[live]
    pairs, first, count = np.unique(pair, return_index=True, return_counts=True)
    for k in np.unique(kind[live[first]]):
        at = np.flatnonzero(kind[live[first]] == k)
        usual, odd = _below_most(count[at])
        for i in at[odd]:
            a, b = divmod(int(pairs[i]), fabric.switches)
            if a < b:
                sentence = (
                    f"{switch_words(fabric, a)} and {switch_words(fabric, b)} are joined by "
                    f"{_count(count[i], 'cable')}, most of their like by {usual:g}"
                )
                found.append(Odd(sentence, tuple(live[pair == pairs[i]].tolist())))
    leaves = np.asarray(fabric.leaves)
    leads_up = level[target] > level[source]
    up = np.bincount(source[live], weights=leads_up[live], minlength=fabric.switches)[leaves]
    usual, odd = _below_most(up)
    for i in np.flatnonzero(odd):
        ways = live[(source[live] == leaves[i]) & leads_up[live]]
        sentence = (
            f"{switch_words(fabric, leaves[i])} has {_count(up[i], 'cable')} up, most leaf "
            f"switches have {usual:g}"
        )
        found.append(Odd(sentence, tuple(ways.tolist())))
    return OddCables((*found, *_odd_hosts(fabric)), slow, replace(fabric, channel_rate=rate))


def _odd_hosts(fabric: Fabric) -> Iterator[Odd]:
    """Hosts of jobs with slower cables than the same HCA's port of most hosts, the slowest first,
    or with fewer ports than most."""
    compute = np.flatnonzero(fabric.is_host_port & (fabric.terminal_kind == Kind.COMPUTE))
    found: list[tuple[float, Odd]] = []
    alike: dict[str, list[int]] = {}
    for t in compute.tolist():
        alike.setdefault(_hca_port(fabric, t), []).append(t)
    for of in map(np.array, alike.values()):
        usual, odd = _below_most(fabric.terminal_rate[of])
        for t in of[odd].tolist():
            rate = float(fabric.terminal_rate[t])
            words = f"is {speed_words(rate)} among {speed_words(usual)}"
            sentence = f"{host_cable_name(fabric, t)} {words}"
            found.append((rate / usual, Odd(sentence, (), (t,))))
    yield from (each for _, each in sorted(found, key=lambda one: one[0]))
    up = set(compute.tolist())
    ports = {host: [t for t in of if t in up] for host, of in fabric.job_ports.items()}
    hosts = [host for host, of in ports.items() if of]
    count = np.array([len(ports[host]) for host in hosts])
    usual, odd = _below_most(count)
    for i in np.flatnonzero(odd):
        yield Odd(
            f"{hosts[i]} has {_count(count[i], 'port')} in the fabric, most hosts have {usual:g}",
            (),
            tuple(ports[hosts[i]]),
        )


def _hca_port(fabric: Fabric, t: int) -> str:
    """`mlx5_0/1`: the HCA by its description, without the host, and its port."""
    _, _, hca = fabric.terminal_description[t].partition(" ")
    return f"{hca}/{fabric.terminal_port_number[t]}"


def host_cable_name(fabric: Fabric, terminal: int) -> str:
    """`"S1-0"[3] – "n004 mlx5_0"[1]`."""
    return " – ".join(host_cable_ends(fabric, terminal))


def host_cable_ends(fabric: Fabric, t: int) -> tuple[str, str]:
    """The ports of a host's cable: that of the switch, and its own."""
    switch = switch_words(fabric, int(fabric.terminal_switch[t]))
    return (
        f"{switch}[{fabric.terminal_switch_port[t]}]",
        f'"{fabric.terminal_description[t]}"[{fabric.terminal_port_number[t]}]',
    )


def _below_most(values: NDArray[np.generic]) -> tuple[float, NDArray[np.bool_]]:
    """The most common value, and which are less, if these are few."""
    found, count = np.unique(values, return_counts=True)
    if not len(found):
        return 0.0, np.zeros(0, np.bool_)
    usual = found[np.argmax(count)]
    odd = values < usual
    return float(usual), odd if odd.sum() <= ODD_SHARE * len(values) else np.zeros(
        len(values), np.bool_
    )


def cable_name(fabric: Fabric, c: int) -> str:
    """`"S1-0"[8] – "S2-2"[1]`."""
    return f"{channel_end(fabric, c)} – {channel_end(fabric, fabric.channel_reverse[c])}"


def channel_end(fabric: Fabric, c: int) -> str:
    """`"S1-0"[8]`: the port at the channel's source."""
    return f"{switch_words(fabric, fabric.channel_source[c])}[{fabric.channel_port[c]}]"


def switch_words(fabric: Fabric, s: int) -> str:
    """Its name, and its GUID where others are called so, too."""
    name = fabric.switch_name[s]
    guid = f" (0x{int(fabric.switch_guid[s]):016x})" if fabric.switch_name.count(name) > 1 else ""
    return f'"{name}"{guid}'


def _count(count: float, what: str) -> str:
    return f"{count:g} {what}" + ("" if count == 1 else "s")
