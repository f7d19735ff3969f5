"""A small two-level fat tree for ibsim, and minimal-hop routes for it, in plain Python: what the
plugin is tested with must not come from the engines that it is there to serve."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile

PORTS = 12
LEAF_GUID, SPINE_GUID, HOST_GUID = 0x1000, 0x2000, 0x10000

Port = tuple[str, int]


@dataclass(frozen=True)
class FatTree:
    """Hosts n001 … on ports 1 … of the leaves; leaf port hosts+1+s goes to spine s."""

    leaves: int = 4
    hosts: int = 4
    spines: int = 2

    def switches(self) -> dict[str, int]:
        """Name → GUID, in ascending order of GUIDs."""
        leaves = {f"leaf{i}": LEAF_GUID + i for i in range(self.leaves)}
        return leaves | {f"spine{i}": SPINE_GUID + i for i in range(self.spines)}

    def terminals(self) -> dict[str, int]:
        """Host → port GUID (ibsim: the node's GUID + 1)."""
        count = self.leaves * self.hosts
        return {f"n{i + 1:03d}": HOST_GUID + 16 * i + 1 for i in range(count)}

    def cables(self) -> Iterator[tuple[Port, Port]]:
        for leaf in range(self.leaves):
            for host in range(self.hosts):
                yield (f"leaf{leaf}", host + 1), (f"n{leaf * self.hosts + host + 1:03d}", 1)
            for spine in range(self.spines):
                yield (f"leaf{leaf}", self.hosts + 1 + spine), (f"spine{spine}", leaf + 1)

    def net(self) -> str:
        """The fabric in ibsim's language. The first lines make every port 4x EDR, unused ones too:
        ibsim panics when a Link joins ports that have no speed in common."""
        ends: dict[str, list[str]] = {}
        for (a, a_port), (b, b_port) in self.cables():
            ends.setdefault(a, []).append(f'[{a_port}] "{b}"[{b_port}]')
            ends.setdefault(b, []).append(f'[{b_port}] "{a}"[{a_port}]')
        blocks = [["width=2", "speed=4", "extspeed=3"]]
        for name, guid in self.terminals().items():  # first: the SM's default place is a host
            blocks.append([f"caguid={guid - 1:#x}", f'Hca 1 "{name}" # "{name} HCA-1"'])
            blocks[-1] += ends[name]
        for name, guid in self.switches().items():
            blocks.append([f"switchguid={guid:#x}", f'Switch {PORTS} "{name}" # "{name}"'])
            blocks[-1] += ends[name]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"

    def _far_ends(self) -> NDArray[np.uint32]:
        """uint32[S, PORTS + 1], as the routes file has them."""
        index = {name: s for s, name in enumerate(self.switches())}
        ends = np.full((len(index), PORTS + 1), NO_SWITCH, np.uint32)
        for (a, a_port), (b, b_port) in self.cables():
            if b in index:
                ends[index[a], a_port] = index[b] << 8 | b_port
                ends[index[b], b_port] = index[a] << 8 | a_port
        return ends

    def routes(
        self,
        generation: int,
        *,
        shift: int = 0,
        lanes: int = 1,
        offsets: int = 1,
        cut: frozenset[Port] = frozenset(),
        without: frozenset[str] = frozenset(),
    ) -> RoutesFile:
        """Minimal routes; of equal next hops destination d takes number d + shift + offset. `cut`
        names a port of each cable that must not be used, `without` hosts that are left out."""
        switches = list(self.switches())
        hosts = [name for name in self.terminals() if name not in without]
        links: dict[str, dict[int, str]] = {name: {} for name in switches}
        for a, b in self.cables():
            if not {a, b} & cut:
                links[a[0]][a[1]] = b[0]
                if b[0] in links:
                    links[b[0]][b[1]] = a[0]
        leaf_of = {b[0]: a for a, b in self.cables() if b[0] not in self.switches()}
        table = np.full((offsets, len(switches), len(hosts) + len(switches)), 255, np.uint8)
        for column, name in enumerate([*hosts, *switches]):
            target, last = leaf_of.get(name, (name, 0))
            hops = self._hops(target, links)
            for row, switch in enumerate(switches):
                nearer = [
                    port
                    for port, peer in sorted(links[switch].items())
                    if hops.get(peer, 99) == hops[switch] - 1
                ]
                for offset in range(offsets):
                    pick = nearer[(column + shift + offset) % len(nearer)] if nearer else last
                    table[offset, row, column] = pick
        rows, columns = np.indices(table.shape)[1:]
        return RoutesFile(
            generation=generation,
            engine="test",
            fabric_digest=bytes(32),
            made_at=1_700_000_000,
            lanes=lanes,
            switch_guids=np.array(list(self.switches().values()), np.uint64),
            terminal_guids=np.array([self.terminals()[h] for h in hosts], np.uint64),
            terminal_leaf=np.array([switches.index(leaf_of[h][0]) for h in hosts], np.uint32),
            switch_ports=np.full(len(switches), PORTS, np.uint8),
            forwarding=table,
            far_ends=self._far_ends(),
            senders=np.array([name.startswith("leaf") for name in switches], np.uint8),
            # In a tree any lanes are free of cycles; odd ones show what comes from us.
            service_levels=((rows + columns) % 3 + 1).astype(np.uint8) if lanes > 1 else None,
            sl_to_vl=((np.arange(16) + 1) % lanes).astype(np.uint8) if lanes > 1 else None,
            fallback_sl=np.full(offsets, 2, np.uint8) if lanes > 1 else None,
        )

    @staticmethod
    def _hops(target: str, links: dict[str, dict[int, str]]) -> dict[str, int]:
        hops, queue = {target: 0}, deque([target])
        while queue:
            here = queue.popleft()
            for peer in links[here].values():
                if peer in links and peer not in hops:
                    hops[peer] = hops[here] + 1
                    queue.append(peer)
        return hops
