"""Determines the switches at which a host that the plan does not know may boot and send.

Packets to such a host take the path to its switch's own LID, and the port to the host as the last
hop. So for a set X of switches three kinds of paths are added to those proved between known hosts:
from all senders to the LIDs of X, as traffic between hosts; from X to hosts; and from X to the LIDs
of X. Where lanes are chosen hop by hop, the host may be at any port of X that has no live cable to
a switch.

Switches with hosts are tried first (if the check proved the traffic of everyone, they need no
further count), then all others at once, and if that fails, those of them with a free port. A set
that fails is halved, and each half is tried. The number of added paths is bounded by a share of the
tables' entries: on three-level trees, hosts at upper switches close loops, and a few paths show it.
**Weak spot:** what is found is safe, but not the largest safe set: it depends on the order of the
switches and on that bound.
"""

from __future__ import annotations

import numpy as np

from sar_agent.check.order import Dependencies
from sar_agent.check.proof import ProvedTables
from sar_agent.check.wiring import HOSTS, free_ports, led_to, with_hosts
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import Bool
from sar_agent.routing.routes import Routes

ENTRIES_A_PATH, LEAST_PATHS, SAMPLED_SWITCHES = 32, 1 << 16, 48
"""At most one path is added for each `ENTRIES_A_PATH` entries of the tables, but `LEAST_PATHS` in
any case. Of a large set, `SAMPLED_SWITCHES` switches are tried first."""
SEARCHED_A_PATH = 16
"""Dependencies that a search for a loop examines in the time of one path."""


def senders_proved(fabric: Fabric, routes: Routes, proved: ProvedTables) -> Bool:
    """bool[S]: switches at which a new host may send without risk of a credit loop; a subset of
    `routes.senders` if that is set. `proved` is the proof that the check left behind."""
    may = fabric.switch_up if routes.senders is None else fabric.switch_up & routes.senders
    search = _Search(fabric, proved)
    hosts = may & search.hosts
    down = ~fabric.terminal_up & hosts[fabric.terminal_switch]
    if proved.everyone and not proved.wiring.by_hop and not down.any():
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


class _Search:
    """The switches proved so far, and the dependencies of all traffic that they allow."""

    def __init__(self, fabric: Fabric, proved: ProvedTables) -> None:
        self.fabric, self.proved = fabric, proved
        self.hosts = (fabric.terminals_at > 0) & fabric.switch_up
        self.lanes = int(proved.wiring.lanes)
        self.planes = proved.counts
        self.proved_switches = np.zeros(fabric.switches, np.bool_)
        self.left = 0

    def take_proved(self, switches: Bool) -> None:
        """Adds switches with hosts, whose paths to all LIDs the check has proved already."""
        self.planes = self.planes.copy()
        self.planes[: self.lanes] |= self.planes[self.lanes :]
        self.proved_switches |= switches

    def halve(self, switches: Bool, times: int = 1) -> None:
        """Adds as many of `switches` as are found within `times` the bound on paths."""
        self.left = times * max(LEAST_PATHS, self.proved.egress.size // ENTRIES_A_PATH)
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
        wiring = with_hosts(self.fabric, self.proved.wiring, self.proved_switches | switches)
        senders = np.count_nonzero(self.hosts | self.proved_switches | switches)
        sample = np.zeros_like(switches)
        sample[np.flatnonzero(switches)[:: 1 + np.count_nonzero(switches) // SAMPLED_SWITCHES]] = (
            True
        )
        # With lanes hop by hop, the lanes depend on the port at which the host is.
        new = switches if wiring.by_hop else switches & ~self.hosts
        to_hosts = led_to(self.fabric, self.proved_switches)
        to_hosts |= self.proved.wiring.destination_kind == HOSTS
        trial = self.planes.copy()
        for sources, selected in (
            (senders if (sample != switches).any() else 0, led_to(self.fabric, sample)),
            (senders, led_to(self.fabric, switches)),
            (np.count_nonzero(new), to_hosts),
        ):
            if not sources:
                continue
            searched = trial[0].size * self.lanes // SEARCHED_A_PATH
            self.left -= int(sources * np.count_nonzero(selected)) + searched
            arrive = self.proved.add_dependencies(wiring, selected, trial)
            if not (arrive and Dependencies(wiring, trial[: self.lanes]).acyclic):
                return False
        self.planes, self.proved_switches = trial, self.proved_switches | switches
        return True
