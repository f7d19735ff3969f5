"""Random fabrics and routes for the judge of the plugin (judge.py), and what happens to them."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile
from tests.worlds.judge import Fabric, Port, Table

ODD = ("torus with gaps", "odd tree", "two planes")
"""Shapes that LMC 1 and 2 are common on."""
SHAPES = ("ring", "torus", "tree", "dragonfly", "random", *ODD)


@dataclass
class World:
    """All that there is, dead or alive. Numbers in `dice` decide what happens next."""

    dice: random.Random
    shape: str
    lmc: int = 0
    ports: dict[int, int] = field(default_factory=dict)
    """GUID of a switch: its highest port."""
    cables: set[tuple[Port, Port]] = field(default_factory=set)
    hosts: dict[int, Port] = field(default_factory=dict)
    lid: dict[int, int] = field(default_factory=dict)
    """The first LID of each host and of each switch."""
    dead: set[int] = field(default_factory=set)
    """Switches."""
    cut: set[tuple[Port, Port]] = field(default_factory=set)
    off: set[int] = field(default_factory=set)
    """Hosts."""

    def fabric(self) -> Fabric:
        live = Fabric({s: p for s, p in self.ports.items() if s not in self.dead})
        for a, b in self.cables - self.cut:
            if a[0] in live.switches and b[0] in live.switches and a[0] != b[0]:
                live.cables |= {a: b, b: a}
        reached = {min(live.switches)} if live.switches else set()
        todo = list(reached)
        while todo:  # what OpenSM cannot reach it does not see
            s = todo.pop()
            for v in {b[0] for a, b in live.cables.items() if a[0] == s} - reached:
                reached.add(v)
                todo.append(v)
        live.switches = {s: p for s, p in live.switches.items() if s in reached}
        live.cables = {a: b for a, b in live.cables.items() if a[0] in reached}
        for host, port in self.hosts.items():
            if host not in self.off and port[0] in reached:
                first = self.lid[host]
                live.hosts[host] = range(first, first + (1 << self.lmc)), port
        return live

    def free_port(self, s: int, former: bool = False) -> Port | None:
        """A port without a cable or host; `former`: at which a cut cable is plugged out."""
        used = {p for cable in self.cables for p in cable} | set(self.hosts.values())
        if former:
            used -= {p for cable in self.cut for p in cable}
        free = [p for p in range(1, self.ports[s] + 1) if (s, p) not in used]
        return (s, self.dice.choice(free)) if free else None

    def connect(self, a: int, b: int) -> bool:
        one = self.free_port(a)
        other = self.free_port(b)
        if one is None or other is None or a == b:
            return False
        self.cables.add((one, other))
        return True

    def new_guid(self) -> int:
        while True:
            guid = self.dice.randrange(1, 1 << 20)
            if guid not in self.ports and guid not in self.hosts:
                return guid

    def new_lid(self) -> int:
        step = 1 << self.lmc
        return (max(self.lid.values(), default=0) // step + 1) * step

    def add_switch(self, ports: int) -> int:
        guid = self.new_guid()
        self.ports[guid] = ports
        self.lid[guid] = self.new_lid()
        return guid

    def add_host(self, port: Port) -> None:
        guid = self.new_guid()
        self.hosts[guid] = port
        self.lid[guid] = self.new_lid()


def build(dice: random.Random, shape: str) -> World:
    world = World(dice, shape, lmc=dice.choice((0, 1, 2) if shape in ODD else (0, 0, 0, 1)))
    joined: list[tuple[int, int]] = []
    if shape == "ring":
        count = dice.randint(3, 7)
        joined = [(i, (i + 1) % count) for i in range(count)]
    elif shape in ("torus", "torus with gaps"):
        count = 9
        joined = [(i, i // 3 * 3 + (i + 1) % 3) for i in range(9)]
        joined += [(i, (i + 3) % 9) for i in range(9)]
        if shape in ODD:  # a fifth of the cables was never plugged in; a part may stand alone
            joined = [pair for pair in joined if dice.random() < 0.8]
    elif shape == "two planes":  # trees whose spines one cable joins; hosts with a port in each
        leaves, spines = dice.randint(2, 3), dice.randint(1, 2)
        count = 2 * (leaves + spines)
        joined = [
            (half + i, half + leaves + k)
            for half in (0, leaves + spines)
            for i in range(leaves)
            for k in range(spines)
        ]
        joined.append((leaves, leaves + spines + leaves))
    elif shape in ("tree", "odd tree"):
        leaves, spines = dice.randint(2, 5), dice.randint(2, 3)
        count = leaves + spines
        joined = [(i, leaves + k) for i in range(leaves) for k in range(spines)]
        if shape in ODD:  # leaves may lack a cable, or all hosts
            joined = [pair for pair in joined if dice.random() < 0.9]
    elif shape == "dragonfly":  # groups whose switches are all joined, and a cable for each two
        groups, wide = dice.randint(2, 4), dice.randint(2, 3)
        count = groups * wide
        joined = [(a, b) for a in range(count) for b in range(a) if a // wide == b // wide]
        joined += [
            (g * wide + dice.randrange(wide), h * wide + dice.randrange(wide))
            for g in range(groups)
            for h in range(g)
        ]
    else:
        count = dice.randint(3, 9)
        joined = [(i, dice.randrange(i)) for i in range(1, count)]
        joined += [
            (dice.randrange(count), dice.randrange(count)) for _ in range(dice.randint(1, 8))
        ]
    joined += [pair for pair in joined if dice.random() < 0.15]  # parallel cables
    switches = [world.add_switch(dice.randint(8, 12)) for _ in range(count)]
    for a, b in joined:
        world.connect(switches[a], switches[b])
    bearing = switches[: len(switches) - spines] if shape == "tree" else switches
    if shape in ("odd tree", "two planes"):
        bearing = [s for i, s in enumerate(switches) if i % (leaves + spines) < leaves]
    for s in bearing:
        for _ in range(dice.choice((0, 1, 1, 2)) if shape != "tree" else dice.randint(1, 2)):
            if port := world.free_port(s):
                world.add_host(port)
    while len(world.hosts) < 2:
        if port := world.free_port(dice.choice(bearing)):
            world.add_host(port)
    return world


def distances(live: Fabric, end: int) -> dict[int, int]:
    near: dict[int, list[int]] = {s: [] for s in live.switches}
    for a, b in live.cables.items():
        near[a[0]].append(b[0])
    found, todo = {end: 0}, deque([end])
    while todo:
        s = todo.popleft()
        for v in near[s]:
            if v not in found:
                found[v] = found[s] + 1
                todo.append(v)
    return found


def shortest(world: World, live: Fabric) -> dict[int, Table]:
    """Tables of another engine, which knows no numbers."""
    tables: dict[int, Table] = {s: {} for s in live.switches}
    for lids, (end, port) in live.hosts.values():
        hops = distances(live, end)
        for lid in lids:
            for s in live.switches:
                out = [a[1] for a, b in live.cables.items() if a[0] == s and hops[b[0]] < hops[s]]
                tables[s][lid] = port if s == end else world.dice.choice(sorted(out))
    return tables


def plan(world: World, live: Fabric) -> RoutesFile:
    """Up*/Down* from a random root, or random trees that close no circle; numbers along the
    dependencies of all paths."""
    dice = world.dice
    switches, hosts = sorted(live.switches), sorted(live.hosts)
    row = {s: i for i, s in enumerate(switches)}
    wide = 1 + max(live.switches.values())
    ends = [row[live.hosts[h][1][0]] for h in hosts] + list(range(len(switches)))
    offsets = dice.choice((1, 1 << world.lmc))
    table = np.full((offsets, len(switches), len(ends)), 255, np.uint8)
    rank = _ranks(world, live)
    bear = {port[0] for _, port in live.hosts.values()}
    may = [s in bear or world.shape != "tree" for s in switches]
    senders = np.array([each and dice.random() < 0.7 for each in may], np.uint8)
    waits: dict[Port, set[Port]] = {c: set() for c in live.cables}
    trees = {
        (o, d): _up_down(dice, live, rank, switches[end], waits)
        for o in range(offsets)
        for d, end in enumerate(ends)
    }
    for (o, d), out in trees.items():
        if dice.random() < 0.3:  # room for Up*/Down* is left
            out = _random_tree(dice, live, switches[ends[d]], waits) or out
        for s, port in out.items():
            table[o, row[s], d] = port
        table[o, ends[d], d] = live.hosts[hosts[d]][1][1] if d < len(hosts) else 0
    numbers, far = (
        _numbers(live, waits, row, wide),
        np.full((len(switches), wide), NO_SWITCH, np.uint32),
    )
    for (s, p), (v, q) in live.cables.items():
        far[row[s], p] = row[v] << 8 | q
    return RoutesFile(
        generation=5,
        engine="judged",
        fabric_digest=bytes(32),
        made_at=1,
        lanes=1,
        switch_guids=np.array(switches, np.uint64),
        terminal_guids=np.array(hosts, np.uint64),
        terminal_leaf=np.array(ends[: len(hosts)], np.uint32),
        switch_ports=np.array([live.switches[s] for s in switches], np.uint8),
        forwarding=table,
        far_ends=far,
        senders=senders,
        service_levels=None,
        sl_to_vl=None,
        fallback_sl=None,
        hop_lanes=None,
        had=None,
        numbers=numbers,
        loads=np.zeros((len(switches), wide), np.uint32),
    )


def _ranks(world: World, live: Fabric) -> dict[int, int]:
    """Up is towards the lower rank. By the distance from a random root, every switch has a path
    up to it, so all reach each other; in a whole tree those without hosts are the upper ones."""
    hops = distances(live, world.dice.choice(sorted(live.switches)))
    bear = {port[0] for _, port in live.hosts.values()}
    if world.shape == "tree" and len(live.cables) >= 2 * (
        len(bear) * (len(live.switches) - len(bear))
    ):
        hops = {s: int(s in bear) for s in live.switches}
    order = sorted(live.switches, key=lambda s: (hops[s], world.dice.random()))
    return {s: i for i, s in enumerate(order)}


def _up_down(
    dice: random.Random, live: Fabric, rank: dict[int, int], end: int, waits: dict[Port, set[Port]]
) -> dict[int, int]:
    """The port of each switch towards `end`: down as soon as a path leads down all the way."""
    out: dict[int, int] = {}
    for down in (True, False, None):  # in the end any way, from a switch that no host is at
        changed = True
        while changed:
            changed = False
            for (s, p), (v, _) in sorted(live.cables.items(), key=lambda _: dice.random()):
                if s in out or s == end or (v not in out and v != end):
                    continue
                if down is None or (rank[s] < rank[v]) == down:
                    out[s], changed = p, True
                    if v != end and down is not None:
                        waits[s, p].add((v, out[v]))
    return out


def _random_tree(
    dice: random.Random, live: Fabric, end: int, waits: dict[Port, set[Port]]
) -> dict[int, int] | None:
    """A random tree, unless its dependencies close a circle with those of the others."""
    out: dict[int, int] = {}
    inside, edges = {end}, sorted(live.cables.items())
    while len(inside) < len(live.switches):
        (s, p), (v, _) = dice.choice(edges)
        if s not in inside and v in inside:
            out[s] = p
            inside.add(s)
    more = {c: set(then) for c, then in waits.items()}
    for s, p in out.items():
        v = live.cables[s, p][0]
        if v != end:
            more[s, p].add((v, out[v]))
    if _order(more) is None:
        return None
    waits.update(more)
    return out


def _order(waits: dict[Port, set[Port]]) -> list[Port] | None:
    count = dict.fromkeys(waits, 0)
    for then in waits.values():
        for c in then:
            count[c] += 1
    free = sorted(c for c, n in count.items() if not n)
    done = []
    while free:
        c = free.pop()
        done.append(c)
        for on in waits[c]:
            count[on] -= 1
            if not count[on]:
                free.append(on)
    return done if len(done) == len(waits) else None


def _numbers(
    live: Fabric, waits: dict[Port, set[Port]], row: dict[int, int], wide: int
) -> np.ndarray:
    order = _order(waits)
    assert order is not None
    numbers = np.zeros((1, len(row), wide), np.uint32)
    for i, (s, p) in enumerate(order):
        numbers[0, row[s], p] = i + 1
    return numbers
