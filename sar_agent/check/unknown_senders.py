"""Determines the switches at which a host that the plan does not know may boot and send.

Packets to such a host take the path to its switch's own LID, and the port to the host as the last
hop. So for a set X of switches three kinds of paths are added to those proved between known hosts:
from all senders to the LIDs of X, as traffic between hosts; from X to hosts; and from X to the LIDs
of X. Where lanes are chosen hop by hop, the host may be at any port of X that has no live cable to
a switch.

A large set is found by halving, and likely sets are tried first: all switches with hosts (where the
check proved everyone, nothing more is counted), then all others at once, else those of them with a
free port. Only the added paths are followed, and the number of paths is bounded by a share of the
tables' entries: on three-level trees, hosts at upper switches close loops, and a few paths show
it.
"""

from __future__ import annotations

import numpy as np

from sar_agent.check.credit_loops import credit_loop
from sar_agent.check.hop_lanes import NO_HOPS, HopLanes
from sar_agent.check.proof import ProvedTables
from sar_agent.check.wiring import HOSTS, OTHERS, Wiring
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel

SHARE, LEAST, SAMPLE = 32, 1 << 16, 48
"""The bound on paths that are followed: one per `SHARE` entries of the tables, but at least
`LEAST`; and the number of switches by which a large set is tried first."""
SEARCH = 16
"""Dependencies that a search for a loop examines in the time of one path."""


def senders_proved(fabric: Fabric, routes: Routes, proved: ProvedTables) -> Bool:
    """bool[S]: switches at which a new host may send without risk of a credit loop; a subset of
    `routes.senders` if that is set. `proved` is the proof that
    the check of `routes` left behind."""
    may = fabric.switch_up if routes.senders is None else fabric.switch_up & routes.senders
    search = _Search(fabric, proved)
    hosts = may & (fabric.terminals_at > 0)
    if proved.everyone and proved.hops is None and not ports_down(fabric, hosts).any():
        search.take_proved(hosts)
    else:
        search.halve(hosts, times=4)
    rest = may & ~hosts
    if rest.any() and not search.add(rest):
        leaf = np.zeros_like(may)
        leaf[fabric.terminal_switch] = True
        free = free_ports(fabric, proved.wiring).any(axis=1)
        for switches in (rest & leaf, rest & ~leaf & free):
            search.halve(switches)
    return search.proved_switches


def with_senders(fabric: Fabric, wiring: Wiring, senders: Bool) -> Wiring:
    """The same wiring with hosts at the switches `senders`, bool[S], which all senders address."""
    sends, kinds = wiring.sends.copy(), wiring.destination_kind.copy()
    sends[HOSTS - 1, senders] |= np.uint32(1)
    sends[OTHERS - 1, senders] |= np.uint32(1) << wiring.lanes
    kinds[_led_to(fabric, senders)] = HOSTS
    return wiring._replace(sends=sends, destination_kind=kinds)


def _led_to(fabric: Fabric, switches: Bool) -> Bool:
    """bool[D]: the destinations whose trees lead packets to unknown hosts at `switches`: the
    switches' LIDs, and known ports that are down."""
    return np.concatenate([ports_down(fabric, switches), switches])


def ports_down(fabric: Fabric, switches: Bool) -> Bool:
    """bool[T]: known ports at `switches` that are down; the check requires no paths to them."""
    down: Bool = ~fabric.terminal_up & switches[fabric.terminal_switch]
    return down


def begin_anywhere(fabric: Fabric, wiring: Wiring, hops: HopLanes, senders: Bool) -> HopLanes:
    """The same lanes with hosts at all free ports of the switches `senders`."""
    begin, free = hops.begin.copy(), free_ports(fabric, wiring)
    for s in np.flatnonzero(senders):
        lanes = np.bitwise_or.reduce(
            np.uint32(1) << hops.lane[s, free[s]].astype(np.uint32), axis=0
        )
        begin[HOSTS - 1, s] |= lanes
        begin[OTHERS - 1, s] |= lanes << wiring.lanes
    return hops._replace(begin=begin)


def free_ports(fabric: Fabric, wiring: Wiring) -> Bool:
    """bool[S, P]: ports without a live cable to a switch; hosts may be attached there."""
    ports = np.arange(int(wiring.ports))
    following = wiring.next.reshape(wiring.switches, -1)[:, :-1]
    free: Bool = (following >= wiring.switches) & (ports > 0)
    return free & (ports <= fabric.switch_ports[:, None])


class UnknownSenders:
    """Follows the paths of unknown hosts in tables that were proved."""

    def __init__(self, fabric: Fabric, proved: ProvedTables) -> None:
        self.fabric, self.proved = fabric, proved
        self.hosts = (fabric.terminals_at > 0) & fabric.switch_up

    def follow(self, sources: Bool, new: Bool, to_hosts: bool, lids: Bool, used: U8) -> None:
        """Adds to `used` uint8[L, S · P · P] the dependencies of hosts at `sources` on paths to
        the LIDs of the switches `lids` and, with `to_hosts`, to all known hosts. At `new` switches
        hosts may be at any port."""
        terminals = self.fabric.terminals
        asked = _led_to(self.fabric, lids)
        asked[:terminals] |= (self.proved.wiring.destination_kind[:terminals] == HOSTS) & to_hosts
        self.follow_to(sources, new, asked, used)

    def follow_to(self, sources: Bool, new: Bool, asked: Bool, used: U8) -> None:
        """The same for the destinations `asked`, bool[D]."""
        proved = self.proved
        by_hop = proved.hops is not None
        hops = NO_HOPS
        if proved.hops:
            hops = begin_anywhere(self.fabric, proved.wiring, proved.hops, new)
        for egress, level in zip(proved.egress, proved.level, strict=True):
            _follow(proved.wiring, hops, by_hop, egress, level, sources, asked, used)


class _Search:
    """The switches proved so far, and the dependencies of all traffic that they allow."""

    def __init__(self, fabric: Fabric, proved: ProvedTables) -> None:
        self.proved, self.senders = proved, UnknownSenders(fabric, proved)
        self.lanes = int(proved.wiring.lanes)
        self.used: U8 = (proved.counts[: self.lanes] > 0).view(np.uint8)
        self.proved_switches = np.zeros(fabric.switches, np.bool_)
        self.left = 0

    def take_proved(self, switches: Bool) -> None:
        """Adds switches with hosts, whose paths to all LIDs the check has proved already."""
        self.used |= (self.proved.counts[self.lanes :] > 0).view(np.uint8)
        self.proved_switches |= switches

    def halve(self, switches: Bool, times: int = 1) -> None:
        """Adds as many of `switches` as are found within `times` the bound on paths."""
        self.left = times * max(LEAST, self.proved.egress.size // SHARE)
        waiting = [np.flatnonzero(switches)]
        while waiting:
            group = waiting.pop()
            which = np.zeros_like(switches)
            which[group] = True
            if len(group) and self.left > 0 and not self.add(which) and len(group) > 1:
                half = len(group) // 2
                waiting += [group[half:], group[:half]]

    def add(self, switches: Bool) -> bool:
        """Adds all of `switches`, unless that closes a loop; whether they were added."""
        senders = self.senders.hosts | self.proved_switches | switches
        trial, sample = self.used.copy(), np.zeros_like(switches)
        sample[np.flatnonzero(switches)[:: 1 + np.count_nonzero(switches) // SAMPLE]] = True
        if not np.array_equal(sample, switches) and not self._loop_free(
            senders, switches, False, sample, trial
        ):
            return False
        if not self._loop_free(senders, switches, False, switches, trial):
            return False
        # With lanes hop by hop, the lanes depend on the port at which the host is.
        new = switches if self.proved.hops else switches & ~self.senders.hosts
        if new.any() and not self._loop_free(new, switches, True, self.proved_switches, trial):
            return False
        self.used, self.proved_switches = trial, self.proved_switches | switches
        return True

    def _loop_free(
        self, sources: Bool, switches: Bool, to_hosts: bool, lids: Bool, used: U8
    ) -> bool:
        """Follows further paths (see `UnknownSenders.follow`); whether they close no loop."""
        self.senders.follow(sources, self.proved_switches | switches, to_hosts, lids, used)
        hosts = len(self.proved.wiring.destination_kind) - len(lids) if to_hosts else 0
        self.left -= int(np.count_nonzero(sources)) * (hosts + int(np.count_nonzero(lids)))
        self.left -= used.size // SEARCH
        return not credit_loop(self.proved.wiring, used, self.proved.hops)


@kernel
def _follow(
    wiring: Wiring,
    hops: HopLanes,
    by_hop: bool,
    egress: U8,
    level: U8,
    sources: Bool,
    asked: Bool,
    used: U8,
) -> None:  # pragma: no cover
    """Follows one LID offset, uint8[D, S] (`level` uint8[D, 0] in one lane)."""
    switches, ports, lanes = np.uint32(len(sources)), wiring.ports, wiring.lanes
    one, low = np.uint32(1), (np.uint32(1) << wiring.lanes) - np.uint32(1)
    passed = np.zeros((lanes, switches), np.uint32)  # the last destination + 1 that passed
    for d in range(len(asked)):
        if not asked[d]:
            continue
        row, root, stamp = egress[d], np.uint32(wiring.root[d]), np.uint32(d + 1)
        for s in range(switches):
            if not sources[s]:
                continue
            v, lane = np.uint32(s), np.uint32(0)
            if level.shape[1]:
                lane = np.uint32(level[d, s]) % lanes
            held = one << lane
            if by_hop:
                held = np.uint32(0)
                if row[s] < ports:
                    held = hops.begin[HOSTS - 1, s, row[s]] & low
            hops_left = switches
            # Paths to a port that is down were not proved to arrive.
            while v != root and hops_left and (by_hop or passed[lane, v] != stamp):
                passed[lane, v] = stamp
                hops_left -= one
                port = np.uint32(row[v])
                w = switches
                if port < ports:
                    w = np.uint32(wiring.next[v * (ports + one) + port])
                if w >= switches or np.uint32(row[w]) >= ports:
                    break
                at = (v * ports + port) * ports + np.uint32(row[w])
                for plane in range(lanes):
                    if held >> plane & one:
                        used[plane, at] = 1
                if by_hop and w != root:
                    held = one << np.uint32(hops.lane[w, hops.entry[v, port], row[w]])
                v = w
