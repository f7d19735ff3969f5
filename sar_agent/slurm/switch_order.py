"""The hosts of a job in the order of the switches: ranks that are neighbours share a leaf switch.

Many MPI programs send most to the ranks next to their own. With hosts in this order, such messages
stay inside a leaf switch, or inside a group of leaf switches that are near each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.model import Fabric
from sar_agent.slurm.topology_generate import generate_topology
from sar_agent.slurm.topology_write import in_tree_order


def in_switch_order(
    fabric: Fabric, hosts: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """((host, its leaf switch) in switch order, hosts that the fabric does not have or that have no
    live link). Hosts of one switch are in the order of their names, numbers as numbers. Raises
    `InputError` for a fabric without hosts."""
    place = {host: (n, leaf) for n, (leaf, host) in enumerate(_walk(fabric))}
    known = sorted((host for host in hosts if host in place), key=lambda host: place[host][0])
    unknown = [host for host in hosts if host not in place]
    return [(host, place[host][1]) for host in known], unknown


def _walk(fabric: Fabric) -> Iterator[tuple[str, str]]:
    """(leaf switch, host) of all hosts: islands together, and leaves inside an island."""
    for leaf in in_tree_order(generate_topology(fabric)):
        yield from ((leaf.name, host) for host in sorted(leaf.nodes, key=hca_order))
