"""The page *How rings stay apart*: its picture and its tables, made by the engine.

`python -m sar_lab.research.rings_apart FOLDER` writes `rings-apart.svg` to the folder and prints
the tables of `sar_lab/research/pages/rings-apart.md`. Rings alone are served, the third step of
`sar-plus`, on the template that it starts from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, Bool
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.ring_messages import RingMessages, ring_messages
from sar_agent.routing.collectives.reasons import exceptions_of
from sar_agent.routing.collectives.serve import Collectives
from sar_agent.routing.routes import Routes
from sar_agent.routing.template import template_of
from sar_lab.research.ring_picture import Side, ring_picture

EXAMPLE = "xgft:3;12,12,12;1,12,12", "mix:2,placed=tree"
TRIED = (
    ("xgft:2;24,24;1,24", 0),
    ("xgft:2;24,24;1,8", 0),
    ("xgft:2;24,24;1,24", 20),
    ("xgft:3;12,12,12;1,12,12", 0),
    ("xgft:3;12,12,12;1,6,12", 0),
    ("xgft:3;12,12,12;1,12,6", 0),
    ("xgft:3;12,12,12;1,12,12", 60),
    ("xgft:3;18,18,36;1,18,18", 0),
)
"""Fabrics, and how many of their cables are dead (drawn with seed 5)."""
MIXES = "mix:2,placed=tree", "mix:2"
TINY = "xgft:3;2,2,2;1,2,1"
TINY_RINGS = (0, 2), (1, 4, 3, 6), (5, 7)


class Rings(NamedTuple):
    """The rings of a mix on tables."""

    fabric: Fabric
    messages: RingMessages
    carried: I64
    """int64[C]: messages."""

    @staticmethod
    def on(fabric: Fabric, mix: JobMix, egress: U8) -> Rings:
        messages = ring_messages(fabric, mix, Routes("rings", fabric.digest, egress[None]))
        crossed = messages.channel[messages.channel >= 0]
        return Rings(fabric, messages, np.bincount(crossed, minlength=fabric.channels))

    def waiting(self, limit: I32) -> int:
        """Jobs of which a message crosses a channel that carries more than `limit` int32[C]."""
        above, channel = self.carried > limit, self.messages.channel
        return len(np.unique(self.messages.part[((channel >= 0) & above[channel]).any(axis=0)]))

    def path(self, message: int) -> I64:
        """The channels of a message."""
        channel = self.messages.channel[:, message]
        return channel[channel >= 0]


class Separated(NamedTuple):
    """A mix on the template, and on tables that separate its rings."""

    fabric: Fabric
    mix: JobMix
    template: U8
    egress: U8
    limit: I32
    """int32[C]: the cut bound: how many messages of rings the cabling forces on each channel."""

    @staticmethod
    def of(fabric: Fabric, mix: JobMix) -> Separated:
        template, collectives = template_of(fabric), Collectives.of(fabric, mix)
        egress = template.egress.copy()
        everything = np.ones(len(collectives.demand.leaf), np.bool_)
        collectives.separate(template, egress, everything)
        return Separated(fabric, mix, template.egress, egress, collectives.limit)

    @property
    def changed(self) -> int:
        """Entries."""
        return int(np.count_nonzero(self.egress != self.template))

    def sides(self) -> tuple[Rings, Rings]:
        """Before and after."""
        before, after = (
            Rings.on(self.fabric, self.mix, each) for each in (self.template, self.egress)
        )
        return before, after


def fabric_with_dead(spec: str, dead: int) -> Fabric:
    """The fabric of a spec without this many cables between switches."""
    fabric = load_fabric(spec)
    cables = np.flatnonzero(np.arange(fabric.channels) < fabric.channel_reverse)
    return fabric.with_links_down(
        np.random.default_rng(5).choice(cables, dead, replace=False).tolist()
    )


def example() -> Separated:
    """1,728 hosts, placed by Slurm's rule."""
    fabric = load_fabric(EXAMPLE[0])
    return Separated.of(fabric, mix_of_spec(EXAMPLE[1], fabric))


def entries_table(found: Separated) -> list[str]:
    """Markdown: each entry that separates rings, and what it is for."""
    fabric, parts = found.fabric, tuple(range(len(found.mix.jobs)))
    lines = [
        "| switch | host | port before | port now | what the entry is for |",
        "|---|---|--:|--:|---|",
    ]
    for each in exceptions_of(fabric, found.mix, found.template, found.egress, parts):
        s, d = each.switch, each.destination
        lines.append(
            f"| {fabric.switch_name[s]} | {fabric.terminal_host[d]} | {found.template[d, s]} "
            f"| {each.port} | {each.reason} |"
        )
    return lines


def picture(found: Separated) -> str:
    """An SVG of the messages that meet on the fullest channel, before and after."""
    before, after = found.sides()
    channel = int(before.carried.argmax())
    mine = np.flatnonzero((before.messages.channel == channel).any(axis=0)).tolist()
    sides = [
        Side([_switches(rings, m) for m in mine], [_ports(rings, m) for m in mine])
        for rings in (before, after)
    ]
    hosts, of = found.fabric.terminal_host, before.messages
    names = [
        (found.mix.jobs[of.part[m]].id, hosts[of.source[m]], hosts[of.destination[m]]) for m in mine
    ]
    return ring_picture(names, *sides)


def _switches(rings: Rings, message: int) -> list[str]:
    fabric, path = rings.fabric, rings.path(message)
    ends = [*fabric.channel_source[path], fabric.channel_target[path[-1]]]
    return [fabric.switch_name[int(s)] for s in ends]


def _ports(rings: Rings, message: int) -> list[int]:
    return [int(port) for port in rings.fabric.channel_port[rings.path(message)]]


def tried_table(tried: tuple[tuple[str, int], ...] = TRIED) -> Iterator[str]:
    """Markdown: jobs whose ring waits more than the cabling forces, before and after."""
    yield (
        "| fabric | cables dead | jobs | of | cut bound | most messages on a channel "
        "| jobs that wait more than they must | entries changed |"
    )
    yield "|---|--:|---|--:|--:|--:|--:|--:|"
    for (spec, dead), mix_spec in product(tried, MIXES):
        fabric = fabric_with_dead(spec, dead)
        found = Separated.of(fabric, mix_of_spec(mix_spec, fabric))
        before, after = found.sides()
        waiting = [rings.waiting(found.limit) for rings in (before, after)]
        yield (
            f"| `{spec}` | {dead} | {'placed' if 'placed' in mix_spec else 'scattered'} "
            f"| {len(found.mix.jobs)} | {found.limit.max()} "
            f"| {before.carried.max()} → {after.carried.max()} "
            f"| {waiting[0]} → {waiting[1]} | {found.changed:,} |"
        )


def tiny_messages() -> tuple[int, int]:
    """(ways to route the rings of `TINY_RINGS` by shortest paths, the least number of messages on
    the fullest channel among all of them): every combination is tried."""
    fabric = load_fabric(TINY)
    mix = JobMix.of(make_job(str(k), ring) for k, ring in enumerate(TINY_RINGS))
    pairs = [(ring[k], ring[(k + 1) % len(ring)]) for ring in TINY_RINGS for k in range(len(ring))]
    assert len(mix.jobs) == len(TINY_RINGS)
    ways = [_shortest(fabric, source, to) for source, to in pairs]
    least, tried = len(pairs), 0
    for chosen in product(*ways):
        tried += 1
        used = np.bincount(np.concatenate(chosen), minlength=fabric.channels)
        least = min(least, int(used.max()))
    return tried, least


def _shortest(fabric: Fabric, source: int, to: int) -> list[list[int]]:
    """All shortest paths between the switches of two terminals, as channels."""
    goal = int(fabric.terminal_switch[to])
    found: list[tuple[int, list[int]]] = [(int(fabric.terminal_switch[source]), [])]
    while all(at != goal for at, _ in found):
        found = [
            (int(fabric.channel_target[c]), [*path, int(c)])
            for at, path in found
            for c in np.flatnonzero(_from(fabric, at))
        ]
    return [path for at, path in found if at == goal]


def _from(fabric: Fabric, switch: int) -> Bool:
    return np.asarray(fabric.channel_source == switch)


def main(folder: Path) -> None:
    """Writes the picture and prints the tables."""
    found = example()
    path = folder / "rings-apart.svg"
    path.write_text(picture(found))
    print(path, "", *entries_table(found), "", sep="\n")
    for line in tried_table():
        print(line, flush=True)
    ways, least = tiny_messages()
    print(f"\n{TINY}: {ways} ways to route {TINY_RINGS}; at best {least} messages on a channel")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
