"""Compares which hosts Slurm's switches join with which hosts cables join, up to the roots.

Trees of another shape may both be right: Slurm's may have fewer levels, or all spines as parents. A
tree is wrong where it would make Slurm choose badly: it joins hosts that no cable joins; it has
several roots where cables join all, so that no job can span them; or it takes two hosts for nearer
than two others that the fabric has nearer. The last is so if and only if a switch of Slurm and an
island of the fabric overlap and neither holds the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from sar_agent.fabric.levels import islands_of
from sar_agent.fabric.model import Fabric
from sar_agent.slurm.topology import SlurmSwitch, SlurmTopology
from sar_agent.util.plural import plural


def compare_reach(fabric: Fabric, topology: SlurmTopology) -> list[str]:
    """The differences, a sentence each. Hosts that only one side knows are left out."""
    hosts = [host for host in topology.leaves_of if host in fabric.job_ports]  # as Slurm calls them
    switch_of = {host: int(fabric.terminal_switch[fabric.job_ports[host][0]]) for host in hosts}
    bit = {host: 1 << place for place, host in enumerate(hosts)}
    at: dict[int, int] = {}
    for host, switch in switch_of.items():
        at[switch] = at.get(switch, 0) | bit[host]
    levels = [
        [sum(at[leaf] for leaf in group) for group in groups]
        for groups in islands_of(fabric, sorted(at))
    ]
    below = _below(topology.switches, bit)
    trees = _joined(list(below.values()))
    pieces = levels[-1] if levels else []
    names = {mask: name for name, mask in below.items()}

    def first(mask: int) -> str:
        return hosts[(mask & -mask).bit_length() - 1]

    found = []
    for piece in pieces:
        parts = [tree & piece for tree in trees if tree & piece]
        if len(parts) > 1:
            found.append(
                f"cables join {first(parts[0])} and {first(parts[1])}, but Slurm's switches above "
                f"them have no common root ({plural(len(parts), 'tree')}): no job can span these"
            )
    for tree in trees:
        parts = [piece & tree for piece in pieces if piece & tree]
        if len(parts) > 1:
            found.append(
                f'Slurm\'s "{names.get(tree, "tree")}" joins {first(parts[0])} and '
                f"{first(parts[1])}, which no live cable joins"
            )
    islands = list(dict.fromkeys(group for level in levels[:-1] for group in level))
    for name, mask in below.items():
        if topology.switches[name].nodes:
            continue
        for island in islands:
            both, only, other = mask & island, mask & ~island, island & ~mask
            if both and only and other:
                found.append(
                    f'Slurm\'s "{name}" holds {first(both)} and {first(only)}, but not '
                    f"{first(other)}, which is nearer to {first(both)} in the fabric"
                )
                break
    return found


def _below(switches: Mapping[str, SlurmSwitch], bit: Mapping[str, int]) -> dict[str, int]:
    """By switch: the hosts below it, as a set of bits. Those of a child are added level by level,
    until nothing changes; cycles are named as problems of the file."""
    masks = {name: _union(bit.get(n, 0) for n in each.nodes) for name, each in switches.items()}
    before: dict[str, int] = {}
    while masks != before:
        before = masks
        masks = {
            name: _union([before[name], *(before.get(child, 0) for child in each.children)])
            for name, each in switches.items()
        }
    return masks


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def _joined(masks: list[int]) -> list[int]:
    """The unions of masks that overlap, in the order of their first host."""
    joined: list[int] = []
    for mask in masks:
        if mask:
            overlapping = [other for other in joined if other & mask]
            joined = [other for other in joined if not other & mask]
            joined.append(_union([mask, *overlapping]))
    return sorted(joined, key=lambda mask: mask & -mask)
