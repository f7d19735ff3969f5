"""At which switches a host that the plan does not know may boot and send.

Such a host is led like its switch's own LID, with the port to it as the last hop. So three things
are added to what is proved between hosts that are known, for the set of switches X that is asked
for: paths from everybody who sends to the LIDs of X, as hosts' traffic; paths from X to hosts; and
from X to the LIDs of X. Where lanes are chosen hop by hop the host may be at any port of X that no
live cable to a switch has.

The largest set is found by halving, from what is likely to be true: first all switches with hosts
(where everything was proved in the check, nothing more is counted), then all others at once, else
those of them that have a port for a host. Only paths that are added are followed, and only as
much is tried as a share of the tables' entries takes: on trees of three levels hosts at upper
switches close loops, and a few paths show it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.check.credit_loops import lanes_loop_free
from sar_agent.check.hop_lanes import NO_HOPS, HopLanes, hop_loop
from sar_agent.check.proof import ProvedTables
from sar_agent.check.wiring import HOSTS, OTHERS, Wiring
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, Bool
from sar_agent.routing.routes import Routes

SHARE, LEAST, SAMPLE = 32, 1 << 16, 48
"""Of work while sets are tried, in paths that are followed: one for so many entries of the tables,
but at least so many; and destinations by which a large set is tried first."""
SEARCH = 16
"""Dependencies that a search for a loop looks at in the time of one path."""


def senders_proved(fabric: Fabric, routes: Routes, proved: ProvedTables) -> Bool:
    """bool[S]: live switches at which hosts that `routes` do not know may send without closing a
    credit loop; never more than `routes.senders`, where that is given. `proved` is the proof that
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
        had = np.zeros_like(may)
        had[fabric.terminal_switch] = True
        for some in (rest & had, rest & ~had & free_ports(fabric, proved.wiring).any(axis=1)):
            search.halve(some)
    return search.found


def with_senders(fabric: Fabric, wiring: Wiring, senders: Bool) -> Wiring:
    """The same wiring with hosts at the switches `senders`, bool[S], whom everybody asks for."""
    sends, asks = wiring.sends.copy(), wiring.asks.copy()
    sends[HOSTS - 1, senders] |= np.uint32(1)
    sends[OTHERS - 1, senders] |= np.uint32(1) << wiring.lanes
    asks[_led_to(fabric, senders)] = HOSTS
    return wiring._replace(sends=sends, asks=asks, most=np.bitwise_or.reduce(sends, axis=1))


def _led_to(fabric: Fabric, switches: Bool) -> Bool:
    """bool[D]: by which rows packets are led to hosts at `switches` that are not there now: those
    of the switches' LIDs, and of ports that are known and down."""
    return np.concatenate([ports_down(fabric, switches), switches])


def ports_down(fabric: Fabric, switches: Bool) -> Bool:
    """bool[T]: ports at `switches` that are known and down; the check asks nobody to reach them."""
    down: Bool = ~fabric.terminal_up & switches[fabric.terminal_switch]
    return down


def begin_anywhere(fabric: Fabric, wiring: Wiring, hops: HopLanes, senders: Bool) -> HopLanes:
    """The same lanes with hosts at all ports of `senders` that may have one."""
    begin, free = hops.begin.copy(), free_ports(fabric, wiring)
    for s in np.flatnonzero(senders):
        lanes = np.bitwise_or.reduce(
            np.uint32(1) << hops.lane[s, free[s]].astype(np.uint32), axis=0
        )
        begin[HOSTS - 1, s] |= lanes
        begin[OTHERS - 1, s] |= lanes << wiring.lanes
    return hops._replace(begin=begin)


def free_ports(fabric: Fabric, wiring: Wiring) -> Bool:
    """bool[S, P]: ports from which no live cable goes to a switch; hosts may be there."""
    ports = np.arange(int(wiring.ports))
    following = wiring.next.reshape(wiring.switches, -1)[:, :-1]
    free: Bool = (following >= wiring.switches) & (ports > 0)
    return free & (ports <= fabric.switch_ports[:, None])


class UnknownSenders:
    """Follows what hosts that nobody knows need, in tables that were proved."""

    def __init__(self, fabric: Fabric, proved: ProvedTables) -> None:
        self.fabric, self.proved = fabric, proved
        self.hosts = (fabric.terminals_at > 0) & fabric.switch_up

    def follow(self, sources: Bool, new: Bool, to_hosts: bool, lids: Bool, used: U8) -> None:
        """Puts into `used` uint8[L, S · P · P] the dependencies of hosts at `sources` on their
        ways to all hosts that are known, or to none, and to the LIDs of the switches `lids`. At
        `new` switches hosts may be at any port."""
        proved, terminals = self.proved, self.fabric.terminals
        asked = _led_to(self.fabric, lids)
        asked[:terminals] |= (proved.wiring.asks[:terminals] == HOSTS) & to_hosts
        by_hop = proved.hops is not None
        hops = NO_HOPS
        if proved.hops:
            hops = begin_anywhere(self.fabric, proved.wiring, proved.hops, new)
        for egress, level in zip(proved.egress, proved.level, strict=True):
            _follow(proved.wiring, hops, by_hop, egress, level, sources, asked, used)


class _Search:
    """Switches found so far, and the dependencies of all that may be sent."""

    def __init__(self, fabric: Fabric, proved: ProvedTables) -> None:
        self.proved, self.senders = proved, UnknownSenders(fabric, proved)
        self.lanes = int(proved.wiring.lanes)
        self.used: U8 = (proved.counts[: self.lanes] > 0).view(np.uint8)
        self.found = np.zeros(fabric.switches, np.bool_)
        self.left = 0

    def take_proved(self, some: Bool) -> None:
        """Adds switches with hosts, whose ways to all LIDs the check has proved with the rest."""
        self.used |= (self.proved.counts[self.lanes :] > 0).view(np.uint8)
        self.found |= some

    def halve(self, some: Bool, times: int = 1) -> None:
        """Adds as many of `some` as are found with so much work."""
        self.left = times * max(LEAST, self.proved.egress.size // SHARE)
        waiting = [np.flatnonzero(some)]
        while waiting:
            few = waiting.pop()
            which = np.zeros_like(some)
            which[few] = True
            if len(few) and self.left > 0 and not self.add(which) and len(few) > 1:
                half = len(few) // 2
                waiting += [few[half:], few[:half]]

    def add(self, some: Bool) -> bool:
        """Adds all of `some`, unless that closes a loop."""
        everybody = self.senders.hosts | self.found | some
        trial, few = self.used.copy(), np.zeros_like(some)
        few[np.flatnonzero(some)[:: 1 + np.count_nonzero(some) // SAMPLE]] = True
        if not np.array_equal(few, some) and not self._holds(everybody, some, False, few, trial):
            return False
        if not self._holds(everybody, some, False, some, trial):
            return False
        # With lanes hop by hop a host may be at a port where the lanes are others.
        new = some if self.proved.hops else some & ~self.senders.hosts
        if new.any() and not self._holds(new, some, True, self.found, trial):
            return False
        self.used, self.found = trial, self.found | some
        return True

    def _holds(self, sources: Bool, some: Bool, to_hosts: bool, lids: Bool, used: U8) -> bool:
        """Follows; whether no loop is closed."""
        self.senders.follow(sources, self.found | some, to_hosts, lids, used)
        hosts = len(self.proved.wiring.asks) - len(lids) if to_hosts else 0
        self.left -= int(np.count_nonzero(sources)) * (hosts + int(np.count_nonzero(lids)))
        self.left -= used.size // SEARCH
        if self.proved.hops:
            return not hop_loop(self.proved.wiring, self.proved.hops, used, everyone=False)
        return lanes_loop_free(self.proved.wiring, used)


@njit(cache=True)
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
    """One LID offset, uint8[D, S] (`level` uint8[D, 0] in one lane)."""
    switches, ports, lanes = np.uint32(len(sources)), wiring.ports, wiring.lanes
    one, low = np.uint32(1), (np.uint32(1) << wiring.lanes) - np.uint32(1)
    passed = np.zeros((lanes, switches), np.uint32)  # destination + 1 that came by last
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
            # What leads to a port that is down was not proved to arrive.
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
