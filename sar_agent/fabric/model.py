"""`Fabric`: switches, terminals and directed channels as flat arrays.

Everything downstream (engines, checks, measures, the routes file) uses indices into these arrays;
GUIDs appear only in data that leaves the process. Links that are down stay in the arrays with
`*_up` False: a route may not use them, but a report can name them.

Dead switches stay, too (`switches_down`): every index keeps its meaning, and results that do not
depend on them can be used again. Ties are broken by GUID everywhere, never by the position in a
file, so that the same fabric, listed in another order, gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.align import Nodes
from sar_agent.fabric.by_host import ByHost
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.rates import speed_words

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fabric:
    """An InfiniBand subnet: S switches, T terminals (HCA ports), C directed channels.

    A *channel* is one direction of one cable between two switches (the paper's C*); the cable
    between a terminal and its leaf switch is described by the terminal itself. Parallel cables
    are channels of their own, several terminals may share a host. Channels are sorted by
    (source switch, egress port): `channel_offset[s]:channel_offset[s + 1]` are those of `s`.
    """

    name: str
    """The source, for messages: a file name or a spec."""
    switch_guid: U64
    """uint64[S], node GUIDs, unique."""
    switch_name: tuple[str, ...]
    """S node descriptions, or ids of switches without one."""
    switch_lid: I32
    """int32[S], 0 where the source knows none."""
    switch_ports: I32
    """int32[S], number of external ports, 1 … 254."""
    terminal_guid: U64
    """uint64[T], port GUIDs, unique."""
    terminal_node_guid: U64
    """uint64[T], GUID of the HCA the port belongs to."""
    terminal_port_number: I32
    """int32[T], the port's number on its HCA, from 1."""
    terminal_description: tuple[str, ...]
    """T node descriptions as found (`n001 HCA-1`)."""
    terminal_host: tuple[str, ...]
    """T host names as in Slurm; the node id where the description holds no name."""
    terminal_rail: I32
    """int32[T], 0 for a host's first port, 1 for its second, …"""
    terminal_kind: U8
    """uint8[T], a `Kind`."""
    terminal_lid: I32
    """int32[T], base LID, 0 where the source knows none."""
    terminal_switch: I32
    """int32[T], leaf switch the port is cabled to."""
    terminal_switch_port: I32
    """int32[T], the leaf's egress port towards the terminal."""
    terminal_up: Bool
    """bool[T], False where that link is down."""
    terminal_rate: F32
    """float32[T], Gbit/s of data, both directions each."""
    channel_offset: I32
    """int32[S + 1]."""
    channel_source: I32
    """int32[C], switch index."""
    channel_target: I32
    """int32[C], switch index."""
    channel_port: I32
    """int32[C], egress port number at the source."""
    channel_reverse: I32
    """int32[C], the other direction of the same cable."""
    channel_up: Bool
    """bool[C]."""
    channel_rate: F32
    """float32[C], Gbit/s of data."""
    switch_position: I32
    """int32[S], position among all nodes of the source file, from 1; `assign_lids` follows it."""
    terminal_position: I32
    """int32[T], position of each terminal's node; ports of one HCA share it."""
    terminal_lanes: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """uint8[T], lanes of the terminal's cable; 0 where the source does not tell, empty where it
    tells none."""
    channel_lanes: U8 = field(default_factory=lambda: np.zeros(0, np.uint8))
    """uint8[C], as `terminal_lanes`."""
    lmc: int = 0
    """The largest LID mask control that the source has for a host port: 2**lmc LIDs per port."""
    notes: tuple[str, ...] = field(default=())
    """What the reader left out or corrected, one sentence each."""
    switches_down: tuple[int, ...] = ()
    """Ascending indices of switches that died: none of their cables is up, and no check requires
    routes to them."""
    traffic: str = ""
    """Whom a job's port sends to, where the user chose it (`HostMapper.traffic`)."""

    @property
    def switches(self) -> int:
        return len(self.switch_guid)

    @property
    def terminals(self) -> int:
        return len(self.terminal_guid)

    @property
    def channels(self) -> int:
        return len(self.channel_source)

    @property
    def destinations(self) -> int:
        """Terminals first (index = terminal), then the switches' own LIDs (index = T + switch)."""
        return self.terminals + self.switches

    def channel_speed(self, channel: int) -> str:
        """`2xHDR`, as the source has it."""
        lanes = self.channel_lanes[channel] if len(self.channel_lanes) else 0
        return speed_words(self.channel_rate[channel], lanes)

    def terminal_speed(self, terminal: int) -> str:
        """`2xHDR`, as the source has it."""
        lanes = self.terminal_lanes[terminal] if len(self.terminal_lanes) else 0
        return speed_words(self.terminal_rate[terminal], lanes)

    @cached_property
    def switch_up(self) -> Bool:
        """bool[S]: all switches but `switches_down`."""
        up = np.ones(self.switches, np.bool_)
        up[list(self.switches_down)] = False
        return up

    @cached_property
    def channel_by_port(self) -> I32:
        """int32[S, 256]: the channel that leaves switch s by port p, -1 where there is no
        channel."""
        table = np.full((self.switches, 256), -1, np.int32)
        table[self.channel_source, self.channel_port] = np.arange(self.channels, dtype=np.int32)
        return table

    @cached_property
    def nodes(self) -> Nodes:
        """GUIDs of the destinations (of terminals those of their ports) and switches."""
        return Nodes(np.concatenate([self.terminal_guid, self.switch_guid]), self.switch_guid)

    @cached_property
    def destination_switch(self) -> I32:
        """int32[T + S]: the switch where the last hop towards each destination starts."""
        own = np.arange(self.switches, dtype=np.int32)
        return np.concatenate([self.terminal_switch, own]).astype(np.int32)

    @cached_property
    def destination_port(self) -> U8:
        """uint8[T + S]: egress port of that last hop; 0 for a switch's own LID."""
        own = np.zeros(self.switches, np.int32)
        return np.concatenate([self.terminal_switch_port, own]).astype(np.uint8)

    @cached_property
    def is_host_port(self) -> Bool:
        """bool[T]: live ports of hosts, that is, without aggregation units inside switches."""
        ports: Bool = self.terminal_up & (self.terminal_kind != Kind.IN_SWITCH)
        return ports

    @cached_property
    def terminals_at(self) -> I32:
        """int32[S]: live host ports per switch; a leaf switch is one that has any."""
        live = self.terminal_switch[self.is_host_port]
        return np.bincount(live, minlength=self.switches).astype(np.int32)

    @cached_property
    def leaves(self) -> I32:
        """int32[L]: the leaf switches, ascending."""
        return np.flatnonzero(self.terminals_at).astype(np.int32)

    @cached_property
    def hosts(self) -> ByHost[tuple[int, ...]]:
        """Host name to its terminals' indices, in index order."""
        terminals_of: dict[str, list[int]] = {}
        for terminal, host in enumerate(self.terminal_host):
            terminals_of.setdefault(host, []).append(terminal)
        return ByHost({host: tuple(terminals) for host, terminals in terminals_of.items()})

    @cached_property
    def job_ports(self) -> ByHost[tuple[int, ...]]:
        """Host name to the terminals that its jobs use: those of kind COMPUTE (`fabric.job_hcas`
        may choose some HCAs), or all if none is."""
        compute = self.terminal_kind == Kind.COMPUTE
        chosen = {h: tuple(t for t in ports if compute[t]) for h, ports in self.hosts.items()}
        return ByHost({host: chosen[host] or ports for host, ports in self.hosts.items()})

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that identify nodes, cables and link states, whatever the order of the source.

        LIDs and descriptions are left out: they can change while the routes stay valid.
        """
        guid, port = self.switch_guid, self.channel_port.astype(np.uint64)
        source, target = guid[self.channel_source], guid[self.channel_target]
        ends = np.stack([source, port, target, self.channel_up.astype(np.uint64)], axis=1)
        leaf, leaf_port = guid[self.terminal_switch], self.terminal_switch_port.astype(np.uint64)
        hosts = np.stack([self.terminal_guid, leaf, leaf_port, self.terminal_up], axis=1)
        # A port has one cable, so source and port determine the order.
        parts = [np.sort(guid)[:, None], ends[np.lexsort((port, source))]]
        parts.append(hosts[np.argsort(self.terminal_guid)])
        if self.switches_down:
            parts.append(np.sort(guid[list(self.switches_down)])[:, None])
        state = hashlib.blake2b(digest_size=32)
        for rows in parts:
            state.update(len(rows).to_bytes(8, "little"))
            state.update(np.ascontiguousarray(rows, dtype="<u8").tobytes())
        return state.digest()

    def channel_name(self, channel: int) -> str:
        """`"S1-0"[8] -> "S2-2"[1]`, as ibnetdiscover and ibsim would write it."""
        back = int(self.channel_reverse[channel])
        source, target = int(self.channel_source[channel]), int(self.channel_target[channel])
        return (
            f'"{self.switch_name[source]}"[{self.channel_port[channel]}] -> '
            f'"{self.switch_name[target]}"[{self.channel_port[back]}]'
        )

    def destination_name(self, destination: int) -> str:
        """The host and its port, or the switch, for messages."""
        if destination >= self.terminals:
            return f'switch "{self.switch_name[destination - self.terminals]}"'
        return f'"{self.terminal_description[destination]}" ({self.terminal_host[destination]})'

    def with_links_down(
        self, channels: Iterable[int] = (), terminals: Iterable[int] = ()
    ) -> Fabric:
        """The same fabric with these cables down (both directions of each channel)."""
        channel_up, terminal_up = self.channel_up.copy(), self.terminal_up.copy()
        cut = list(channels)
        channel_up[cut] = channel_up[self.channel_reverse[cut]] = False
        terminal_up[list(terminals)] = False
        return replace(self, channel_up=channel_up, terminal_up=terminal_up)

    def with_switches_down(self, switches: Iterable[int]) -> Fabric:
        """The same fabric without these switches: all their cables are down, to terminals, too."""
        down = np.union1d(self.switches_down, list(switches)).astype(np.int32)
        channels = np.flatnonzero(np.isin(self.channel_source, down))
        terminals = np.flatnonzero(np.isin(self.terminal_switch, down))
        after = self.with_links_down(channels.tolist(), terminals.tolist())
        return replace(after, switches_down=tuple(down.tolist()))
