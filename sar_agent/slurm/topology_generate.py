"""Generates Slurm's topology file from the fabric: the nodes of each leaf switch, and near leaves.

Slurm needs a tree, and a fat tree is not a tree. Slurm's scheduler uses the tree only to find
leaves that are near each other, so the switches above the leaves are grouped: leaves that reach
each other over the lowest level that connects them are one *island*, islands that do so one level
up are one larger island, and all that is connected has one root. Pieces without a live link between
them have a root each, so that Slurm never spreads a job over both.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import Kind, hca_order
from sar_agent.fabric.levels import islands_of
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.notes import name_notes
from sar_agent.fabric.switch_names import slurm_switch_name
from sar_agent.slurm.conf_lists import read_list
from sar_agent.slurm.topology import LONGEST_NAME

_SPECIAL = re.compile(r"[^A-Za-z0-9_.-]+")
_MOST_LEVELS = 18
"""Slurm calls a tree of more than 20 levels none."""
_NODE_ID = re.compile(r"(?:H-|0x)?[0-9a-f]{12,16}")
"""The name of a host whose description holds no name."""


@dataclass(frozen=True)
class TreeSwitch:
    """A line of the file: a leaf has `nodes`, other switches have `children`; both are names.
    `described` is the fabric's description of a leaf whose `name` is another."""

    name: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    described: str = ""


@dataclass(frozen=True)
class Generated:
    """Switches, children before parents, and a sentence for each group of hosts left out."""

    switches: tuple[TreeSwitch, ...]
    notes: tuple[str, ...]


def generate_topology(fabric: Fabric) -> Generated:
    """The tree of the fabric's compute hosts. A host with ports on several leaves is
    where the first live port that jobs use is; hosts without a live port, or without a name, are
    left out.

    Raises `InputError` for a fabric without any.
    """
    leaf_of, notes = _hosts(fabric)
    notes += name_notes(fabric)
    if not leaf_of:
        remedy = "node descriptions hold the names; --host-pattern (fabric.host_pattern) says where"
        raise InputError(f"no compute host is left: {'; '.join(notes) or 'it has none'}",
                         file=fabric.name, remedy=remedy)  # fmt: skip
    names = _names(fabric)
    leaves = sorted(set(leaf_of.values()), key=lambda leaf: hca_order(names[leaf]))
    near = {leaf: names[leaf] for leaf in leaves}
    switches = [
        TreeSwitch(
            name,
            nodes=tuple(host for host, at in leaf_of.items() if at == leaf),
            described="" if fabric.switch_name[leaf] == name else fabric.switch_name[leaf],
        )
        for leaf, name in near.items()
    ]
    taken = set(near.values())
    levels = list(islands_of(fabric, leaves))
    del levels[_MOST_LEVELS:-1]
    highest = len(levels) - 1
    for least, groups in enumerate(levels):
        several = len(groups) > 1
        kind = "root" if least == highest else "island" if least < 2 else f"island{least}-"
        for number, group in enumerate(groups, 1):
            children = tuple(dict.fromkeys(near[leaf] for leaf in group))
            if len(children) > 1:
                name = _free(f"{kind}{number}" if several or least < highest else kind, taken)
                switches.append(TreeSwitch(name, children=children))
                near |= dict.fromkeys(group, name)
    return Generated(tuple(switches), tuple(notes))


def _hosts(fabric: Fabric) -> tuple[dict[str, int], list[str]]:
    """Compute hosts and their leaf switches, and a sentence for each group left out."""
    leaf_of: dict[str, int] = {}
    dead, nameless, unfit = [], [], []
    for host, ports in fabric.job_ports.items():
        if fabric.terminal_kind[ports[0]] != Kind.COMPUTE:
            continue
        live = [port for port in ports if fabric.terminal_up[port]]
        if not live:
            dead.append(host)
        elif _SPECIAL.search(host) or _NODE_ID.fullmatch(host):
            nameless.append(host)
        elif read_list(host)[0] != (host,):
            unfit.append(host)
        else:
            leaf_of[host] = int(fabric.terminal_switch[live[0]])
    out = {
        "without a live link": dead,
        "without a host's name": nameless,
        "with a number above 64 bits in the name": unfit,
    }
    notes = [f"{len(hosts)} {why}: {', '.join(hosts[:5])}" for why, hosts in out.items() if hosts]
    return leaf_of, notes


def _names(fabric: Fabric) -> list[str]:
    """By switch: its description in characters that Slurm accepts, or its GUID where that is not
    unique or too long."""
    plain = [slurm_switch_name(name) for name in fabric.switch_name]
    guids = [f"S-{guid:016x}" for guid in fabric.switch_guid]
    times = Counter([*plain, *guids])
    return [
        name if name and times[name] == 1 and len(name) <= LONGEST_NAME else guid
        for name, guid in zip(plain, guids, strict=True)
    ]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
