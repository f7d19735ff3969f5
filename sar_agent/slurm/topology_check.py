"""Compares Slurm's topology with the fabric."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from sar_agent.errors import InputError
from sar_agent.fabric.by_host import ByHost
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.name_patterns import between_commas, matches_host
from sar_agent.fabric.notes import name_notes
from sar_agent.slurm.topology import SlurmTopology, Version
from sar_agent.slurm.topology_reach import compare_reach
from sar_agent.util.hostlist import expand

NAMES_SHOWN = 5


def nodes_named(topology: SlurmTopology, text: str) -> frozenset[str]:
    """The nodes of Slurm's topology that `--elsewhere` names: a list (`web[01-04],db1`), or
    patterns (`web*`), in any case, with or without a domain. Raises `InputError` for what names
    none."""
    nodes, found = ByHost(dict.fromkeys(topology.leaves_of, True)), set[str]()
    for part in filter(None, map(str.strip, between_commas(text))):
        names = (part,) if re.search(r"[*?]", part) else expand(part)
        here = {name for each in names if (name := nodes.name_of(each))}
        here |= {node for node in nodes if matches_host(node, (part,))}
        if not here:
            similar = get_close_matches(part, nodes, n=3)
            meant = f"did you mean {' or '.join(similar)}? Or " if similar else ""
            raise InputError(
                f"--elsewhere {part}: Slurm's topology has no such node",
                remedy=f"{meant}give nodes of it, as a list or a pattern",
            )
        found |= here
    return frozenset(found)


def check_topology(
    fabric: Fabric,
    topology: SlurmTopology,
    version: Version | None = None,
    without: Collection[str] = (),
) -> list[str]:
    """What slurmctld would refuse (of any version, if none is given), then the differences from the
    fabric: hosts, leaves, and what the switches above them join. `without`: nodes that have no
    InfiniBand."""
    name_of = fabric.hosts.name_of
    leaf_of = {
        name_of(host) or host: min(on)
        for host, on in topology.leaves_of.items()
        if host not in without
    }
    return [
        *topology.problems,
        *name_notes(fabric),
        *(str(each) for each in topology.refusals if each.by(version)),
        *compare_topology(fabric, leaf_of),
        *([] if topology.blocks else compare_reach(fabric, topology)),
    ]


def nodes_elsewhere(fabric: Fabric, topology: SlurmTopology) -> dict[str, tuple[str, ...]]:
    """The nodes of Slurm's leaf switches none of whose nodes is in the fabric, by switch: such a
    switch is of another network, unless there is no other."""
    name_of = fabric.hosts.name_of
    found = {
        switch.name: switch.nodes
        for switch in topology.switches.values()
        if switch.nodes and not any(name_of(node) for node in switch.nodes)
    }
    return found if len(found) < len(topology.leaves) else {}


def compare_topology(fabric: Fabric, leaf_of: Mapping[str, str]) -> list[str]:
    """The differences between `leaf_of` (host to Slurm leaf switch) and the fabric, a sentence
    each.

    Leaf names need not be the fabric's; compared is which hosts share a leaf. Rails of one host may
    be on different switches, so hosts are compared by the switches of the first rail that jobs
    use. Storage and other kinds of hosts are not expected in Slurm.
    """
    compute = {
        host: int(fabric.terminal_switch[ports[0]])
        for host, ports in fabric.job_ports.items()
        if fabric.terminal_kind[ports[0]] == Kind.COMPUTE
    }
    differences = []
    if unknown := sorted(set(leaf_of) - set(fabric.hosts)):
        differences.append(_hosts(unknown, "of Slurm's topology {} not in the fabric"))
    if missing := sorted(set(compute) - set(leaf_of)):
        differences.append(_hosts(missing, "of the fabric {} not in Slurm's topology"))
    switches_of: dict[str, dict[int, str]] = {}
    leaves_of: dict[int, dict[str, str]] = {}
    for host in sorted(set(leaf_of) & set(compute)):
        leaf, switch = leaf_of[host], compute[host]
        switches_of.setdefault(leaf, {}).setdefault(switch, host)
        leaves_of.setdefault(switch, {}).setdefault(leaf, host)
    for leaf, switches in sorted(switches_of.items()):
        if len(switches) > 1:
            cases = [f'{h} on "{fabric.switch_name[s]}"' for s, h in switches.items()]
            differences.append(
                f'Slurm\'s leaf "{leaf}" is {len(switches)} switches in the fabric: ' + _list(cases)
            )
    for switch, leaves in sorted(leaves_of.items()):
        if len(leaves) > 1:
            cases = [f'{h} under "{leaf}"' for leaf, h in leaves.items()]
            differences.append(
                f'switch "{fabric.switch_name[switch]}" is {len(leaves)} leaves to Slurm: '
                + _list(cases)
            )
    return differences


def _hosts(names: list[str], rest: str) -> str:
    hosts, verb = ("host", "is") if len(names) == 1 else ("hosts", "are")
    return f"{len(names)} {hosts} {rest.format(verb)}: {_list(names)}"


def _list(names: list[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
