"""The text of Slurm's topology files. Each version of Slurm from 21.08 on reads a tree as it is
written here; blocks need 24.05, and topology.yaml 25.05.

A leaf switch whose description Slurm cannot take has another name; a comment gives both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sar_agent.errors import InputError
from sar_agent.slurm.conf_lists import write_list
from sar_agent.slurm.topology import Version
from sar_agent.slurm.topology_generate import Generated, TreeSwitch

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MOST_SIZES = 16
Named = Sequence[tuple[str, Generated]]
"""Trees, each with the name of its fabric."""


def topology_conf(trees: Named) -> str:
    """A topology.conf for `TopologyPlugin=topology/tree`; several trees have a root each."""
    lines = [*_heading(trees)]
    for switch in _switches(trees):
        what = "Nodes" if switch.nodes else "Switches"
        lines.append(f"SwitchName={switch.name} {what}={_list(switch)}")
    return "\n".join(lines) + "\n"


def block_conf(trees: Named) -> str:
    """A topology.conf for `TopologyPlugin=topology/block`: a block for each leaf switch, in the
    order of the islands, and sizes up to all blocks."""
    leaves = [switch for _, tree in trees for switch in in_tree_order(tree)]
    lines = [*_heading(trees), "BlockSizes=" + ",".join(map(str, _sizes(leaves)))]
    lines += [f"BlockName={leaf.name} Nodes={_list(leaf)}" for leaf in leaves]
    return "\n".join(lines) + "\n"


def topology_yaml(trees: Named) -> str:
    """A topology.yaml with a topology for each tree; the first is the cluster's default."""
    lines = [*_heading(trees)]
    for place, (_, tree) in enumerate(trees):
        lines.append(f"- topology: fabric{place + 1 if place else ''}")
        lines.append(f"  cluster_default: {'false' if place else 'true'}")
        lines += ["  tree:", "    switches:"]
        for switch in tree.switches:
            what = "nodes" if switch.nodes else "children"
            lines += [f'      - switch: "{switch.name}"', f'        {what}: "{_list(switch)}"']
    return "\n".join(lines) + "\n"


FORMS: dict[str, tuple[Version, Callable[[Named], str]]] = {
    "conf": ((0, 0), topology_conf),
    "yaml": ((25, 5), topology_yaml),
    "block": ((24, 5), block_conf),
}
"""By form: the first version of Slurm that reads it, and its writer."""


def topology_text(trees: Named, form: str, version: Version | None) -> str:
    """The file in one of `FORMS`. Raises `InputError` where this version cannot read it, or where
    the fabrics share hosts and the form has one place for each."""
    since, write = FORMS[form]
    hosts = [{host for each in tree.switches for host in each.nodes} for _, tree in trees]
    if form != "yaml" and sum(map(len, hosts)) > len(set().union(*hosts)):
        raise InputError(
            "some hosts are in several of the fabrics, and topology.conf has one place for each",
            remedy="write --form yaml, or give one fabric",
        )
    if version and version < since:
        raise InputError(
            f"Slurm {version[0]}.{version[1]:02d} reads no --form {form}, which is of "
            f"{since[0]}.{since[1]:02d}",
            remedy="write --form conf",
        )
    return write(trees)


def in_tree_order(tree: Generated) -> Iterator[TreeSwitch]:
    """The leaf switches, those of an island together."""
    switches = {switch.name: switch for switch in tree.switches}
    below = {child for switch in tree.switches for child in switch.children}
    waiting = [name for name in reversed(switches) if name not in below]
    while waiting:
        switch = switches[waiting.pop()]
        if switch.nodes:
            yield switch
        waiting += reversed(switch.children)


def _switches(trees: Named) -> Iterator[TreeSwitch]:
    """The switches of all trees, by names of their own."""
    taken: set[str] = set()
    for place, (_, tree) in enumerate(trees, 1):
        names = {each.name: each.name for each in tree.switches}
        for name in names:
            while names[name] in taken:
                names[name] += f"_{place}"
            taken.add(names[name])
        for each in tree.switches:
            children = tuple(names[child] for child in each.children)
            yield TreeSwitch(names[each.name], each.nodes, children, each.described)


def _heading(trees: Named) -> Iterator[str]:
    for source, tree in trees:
        yield _comment(f"Made by `sar-agent topology generate` from {source}.")
        for note in tree.notes:
            yield _comment(f"Left out: {note}")
        for switch in tree.switches:
            if switch.described:
                yield _comment(f'{switch.name} is "{switch.described}"')


def _comment(text: str) -> str:
    return f"# {_CONTROL.sub('?', text)}"


def _list(switch: TreeSwitch) -> str:
    return write_list(switch.nodes or switch.children)


def _sizes(leaves: Sequence[TreeSwitch]) -> list[int]:
    """The fewest hosts of a leaf, which each block must have, and its doubles up to all blocks."""
    least = min(len(leaf.nodes) for leaf in leaves)
    return [least << k for k in range(_MOST_SIZES) if k == 0 or 1 << (k - 1) < len(leaves)]
