"""Rails: port k of a host sends to port k of the other hosts.

On a rail-optimised pod the ports k of all hosts of a pod end on one leaf switch, rail k. NCCL sends
from rail to rail within a host (PXN), so that hardly a message crosses rails in the network. An
all-to-all of all ports, which is taken for jobs of which nothing is known, counts traffic that such
a network is not built for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.model import I32, Fabric
from sar_agent.util.plural import plural

PURE_SHARE = 0.95
"""Share of the ports that end on a leaf switch of their own rail, from which a fabric is taken to
be rail-optimised."""
HOSTS_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Rails:
    """The rail of each port that jobs use."""

    rail: I32
    """int32[T], -1 for ports that jobs do not use."""
    recognised: bool
    """From the cabling; else the number of the port in its host."""
    incomplete: frozenset[str] = frozenset()
    """Hosts that have no port on some of the rails; they are on the others."""

    def note(self, hosts: Iterable[str] = ()) -> str:
        """What a report says that takes rails from the cabling; empty where it shows none. `hosts`
        of jobs that are not on all rails are named."""
        if not self.recognised:
            return ""
        said = (
            f"The {plural(int(self.rail.max()) + 1, 'port')} of a host end on leaf switches of "
            "their own "
            "rails, so each is taken to send to the same port of the other hosts, as NCCL does, "
            "and each rail of a job is a part of its own (--traffic alltoall, or the agent's "
            "fabric.traffic, counts all pairs of ports)"
        )
        few = sorted(self.incomplete.intersection(hosts), key=hca_order)
        if not few:
            return said
        named = ", ".join(few[:HOSTS_SHOWN]) + ", …" * (len(few) > HOSTS_SHOWN)
        hosts_of = f"{plural(len(few), 'host')} ({named})"
        return f"{said}. Not on all rails, but on those that they have: {hosts_of}"


def rails_of(fabric: Fabric) -> Rails | None:
    """The rails in which jobs send; None where each port sends to all. By the user's choice
    (`Fabric.traffic`), and without one by the cabling."""
    if fabric not in _KNOWN:
        _KNOWN[fabric] = _chosen(fabric)
    return _KNOWN[fabric]


_KNOWN: WeakKeyDictionary[Fabric, Rails | None] = WeakKeyDictionary()


def _chosen(fabric: Fabric) -> Rails | None:
    if fabric.traffic == "alltoall" or not fabric.terminal_rail.any():
        return None  # the latter: no host has two ports
    rails = _rails(fabric)
    return rails if fabric.traffic == "rail" or rails.recognised else None


def _rails(fabric: Fabric) -> Rails:
    """A host of most ports has as many ports as there are rails; a leaf switch is of the rail of
    most of such hosts' ports, and a port of another host is on the rail of its leaf switch."""
    place = np.full(fabric.terminals, -1, np.int32)
    size = np.zeros(fabric.terminals, np.int64)
    for ports in fabric.job_ports.values():
        place[list(ports)], size[list(ports)] = np.arange(len(ports)), len(ports)
    plain = Rails(place, recognised=False)
    most = int(np.bincount(size[place >= 0], minlength=1).argmax())
    used = np.flatnonzero(size == most)
    if most < 2 or 2 * len(used) < np.count_nonzero(place >= 0):
        return plain
    count = np.zeros((fabric.switches, most), np.int64)
    np.add.at(count, (fabric.terminal_switch[used], place[used]), 1)
    rail_of, known = count.argmax(axis=1), count.sum(axis=1) > 0
    if count.max(axis=1).sum() < PURE_SHARE * len(used) or len(np.unique(rail_of[known])) < 2:
        return plain
    on_rail = (place >= 0) & known[fabric.terminal_switch]
    rail = np.where(on_rail, rail_of[fabric.terminal_switch], place)
    few = (h for h, ports in fabric.job_ports.items() if len(set(rail[list(ports)])) < most)
    return Rails(rail.astype(np.int32), recognised=True, incomplete=frozenset(few))
