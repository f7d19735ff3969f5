"""Hosts of jobs as Slurm's `topology/tree` gives them out (select/cons_tres).

A job goes below the lowest switch of the topology file with enough free hosts, of several the one
with fewest. There it takes the leaf switch with fewest free hosts that has enough, or else all of
the leaf switch with most, and so on with the rest. So it gets few leaf switches, and large gaps
stay whole.

In 60 moments of queues on a two-level tree it gives a job of 20 nodes the nodes that slurmctld
22.05.8 gives (`sar_lab/research/recorded/slurm-choices.json`).

**Weak spot:** a stand-in for Slurm's code, not a copy of it. Reservations, weights of nodes,
partitions and several jobs on a host are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sar_agent.fabric import Fabric, Kind
from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.levels import islands_of

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
SHARES = (10, 10, 4, 12, 5, 12, 5, 12, 4, 4, 8, 3, 3, 5, 2, 1)
"""Hosts of a job, and how many per cent of the jobs ask for so many. The shape is that of published
traces (small jobs and powers of two are common); the numbers are ours."""
BUSY_SHARE = 0.92
"""No job starts that would use more of the hosts."""
LARGEST_SHARE = 0.25
"""Of the hosts, for one job."""
JOBS_A_HOST = 8
"""How many jobs each host has had by then, on average."""


def hosts_by_leaf(fabric: Fabric) -> dict[int, list[str]]:
    """The compute hosts that jobs can use, by the leaf switch of their first port; leaves of an
    island follow each other, hosts are in the order of their names."""
    usable = fabric.terminal_up & (fabric.terminal_kind == Kind.COMPUTE)
    at: dict[int, list[str]] = {}
    for host, ports in fabric.job_ports.items():
        if usable[list(ports)].all():
            at.setdefault(int(fabric.terminal_switch[ports[0]]), []).append(host)
    leaves = sorted(
        at, key=lambda s: (hca_order(fabric.switch_name[s]), int(fabric.switch_guid[s]))
    )
    for islands in islands_of(fabric, leaves):
        leaves = [leaf for island in islands for leaf in island]
    return {leaf: sorted(at[leaf], key=hca_order) for leaf in leaves}


class TreePlacement:
    """The free hosts of a machine."""

    def __init__(self, fabric: Fabric) -> None:
        self._hosts = hosts_by_leaf(fabric)
        self.free = {leaf: list(hosts) for leaf, hosts in self._hosts.items()}
        leaves = list(self.free)
        apart = [[leaf] for leaf in leaves]
        self._levels = [apart, *islands_of(fabric, leaves)]
        self._leaf = {host: leaf for leaf, hosts in self.free.items() for host in hosts}

    def start(self, count: int) -> list[str]:
        """The hosts of a job; there must be enough free ones."""
        leaves = self._below(count)
        hosts: list[str] = []
        while len(hosts) < count:
            wanted = count - len(hosts)
            enough = [leaf for leaf in leaves if len(self.free[leaf]) >= wanted]
            if enough:
                leaf = min(enough, key=lambda leaf: len(self.free[leaf]))
            else:
                leaf = max(leaves, key=lambda leaf: len(self.free[leaf]))
            hosts += self.free[leaf][:wanted]
            del self.free[leaf][:wanted]
        return hosts

    def end(self, hosts: Iterable[str]) -> None:
        """The hosts are free again."""
        for host in hosts:
            self.free[self._leaf[host]].append(host)
        for leaf in {self._leaf[host] for host in hosts}:
            self.free[leaf].sort(key=self._hosts[leaf].index)

    def _below(self, count: int) -> list[int]:
        """The leaf switches below the lowest switch with so many free hosts."""
        for islands in self._levels:
            sums = [sum(len(self.free[leaf]) for leaf in island) for island in islands]
            fitting = [n for n, free in enumerate(sums) if free >= count]
            if fitting:
                return islands[min(fitting, key=lambda n: sums[n])]
        raise ValueError(f"{count} hosts are more than are free in one piece of the fabric")


def queue_on_tree(fabric: Fabric, seed: int) -> list[list[str]]:
    """The hosts of the jobs that run at a moment of a long queue, when the next one does not fit.

    While the next job fits it starts; otherwise a random one ends.
    """
    random = np.random.default_rng(seed)
    place = TreePlacement(fabric)
    hosts = sum(map(len, place.free.values()))
    most, largest = round(BUSY_SHARE * hosts), max(1, LARGEST_SHARE * hosts)
    sizes = [size for size in SIZES if size <= largest]
    shares = np.array(SHARES[: len(sizes)]) / sum(SHARES[: len(sizes)])
    mean = float(shares @ sizes)
    starts, running, busy = round(JOBS_A_HOST * hosts / mean), dict[int, list[str]](), 0
    started = 0
    while hosts:
        wanted = int(random.choice(sizes, p=shares))
        while busy + wanted > most:
            if started >= starts and busy >= most - max(1, 0.05 * hosts):
                return list(running.values())
            ended = running.pop(int(random.choice(list(running))))
            place.end(ended)
            busy -= len(ended)
        running[started] = place.start(wanted)
        started += 1
        busy += wanted
    return []
