"""Slurm's topology.yaml (Slurm 25.05 and later), where a site keeps its topologies in one file.

The file is read as Slurm reads it (topology.yaml(5) of 25.05 to 26.05): a list of topologies, each
`flat:`, `block:`, `ring:`, `torus3d:` or a `tree:` with `switches:` that have `switch:` and
`nodes:` or `children:`. Of several trees the one with `cluster_default: true` is used, else the
first, or the one that is asked for. The other kinds name groups of nodes, not leaf switches; a file
without a tree is refused with the name and the kind of each topology.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from sar_agent.errors import InputError
from sar_agent.slurm.conf_lists import read_list
from sar_agent.slurm.topology import (
    SlurmSwitch,
    SlurmTopology,
    SwitchLines,
    topology_of,
    topology_text,
)

KINDS = ("tree", "block", "flat", "ring", "torus3d")
_REMEDY = "a tree is `- topology: NAME` with `tree: {switches: [{switch: …, nodes: …}, …]}`"


def read_topology_yaml(
    path: str | Path, *, tree: str | None = None, hosts: Collection[str] = ()
) -> SlurmTopology:
    """Read a topology.yaml; `tree` is the name of one of its topologies. Without it, of several
    trees the one that names most of `hosts` is read.

    Raises `InputError` with file and line for a file that cannot be parsed or has no tree.
    """
    import yaml  # loading it takes a tenth of a second, and most sites do not need it

    file = Path(path)
    try:
        root = yaml.compose(topology_text(file), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"is not YAML: {error.problem}", file=file, line=line) from error
    except RecursionError as error:
        raise InputError(
            "is not a topology: its lists are nested without end", file=file
        ) from error
    except yaml.YAMLError as error:
        what = str(error).partition("\n")[0]
        raise InputError(f"is not YAML: {what}", file=file) from error
    reading = _Reading(file)
    trees = reading.trees(root, tree)
    read = {name: topology_of(reading.switches(node), [file]) for name, node in trees.items()}
    if len(read) == 1:
        return next(iter(read.values()))
    known = set(hosts)
    name = max(read, key=lambda each: len(known & read[each].leaves_of.keys()))  # else the default
    return replace(read[name], tree=name, trees=tuple(read))


class _Reading:
    """Reads YAML nodes rather than values, since only nodes have a line number."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def fail(self, node: Any, what: str, remedy: str = _REMEDY) -> NoReturn:
        """Raises `InputError` with the node's line."""
        line = node.start_mark.line + 1 if node is not None else None
        raise InputError(what, file=self.file, line=line, remedy=remedy)

    def trees(self, root: Any, wanted: str | None) -> dict[str, Any]:
        """The nodes of the trees, that which Slurm uses first; of the one with this name alone."""
        trees, names, others = [], [], []
        for topology in self.items(root, "a list of topologies"):
            keys = self.keys(topology)
            name = self.text(keys["topology"]) if "topology" in keys else "without a name"
            if "tree" in keys:
                if name == wanted:
                    return {name: keys["tree"]}
                default = keys.get("cluster_default")
                trees.append((default is not None and self.text(default).lower() == "true", keys))
                names.append(name)
                continue
            kind = next((kind for kind in KINDS if kind in keys), "")
            others.append(f"{name} is {kind}" if kind else f"{name} is of an unknown kind")
        if trees and wanted is not None:
            self.fail(root, f"no tree in it is {wanted}", f"its trees are {', '.join(names[:9])}")
        if not trees:
            found = f" ({', '.join(others[:5])})" if others else ""
            self.fail(
                root,
                f"no topology in it is a tree{found}, so it names no leaf switches",
                'set slurm.topology_conf = "" to take leaf switches from the fabric',
            )
        order = sorted(range(len(trees)), key=lambda k: not trees[k][0])
        return {names[k]: trees[k][1]["tree"] for k in order}

    def switches(self, tree: Any) -> SwitchLines:
        """The switches of a tree; entries that are no switch are problems."""
        read = SwitchLines()
        for node in self.items(self.keys(tree).get("switches"), "`switches:` of the tree"):
            try:
                keys = self.keys(node)
                if "switch" not in keys:
                    self.fail(node, "a switch has no `switch:` name")
                name, line = self.text(keys["switch"]), node.start_mark.line + 1
                nodes, children = (self.hosts(keys.get(key)) for key in ("nodes", "children"))
            except InputError as error:
                read.problems.append(error)
                continue
            read.add(SlurmSwitch(name, nodes, children, self.file, line), "nodes and children")
        return read

    def hosts(self, node: Any) -> tuple[str, ...]:
        """The names of a host list; empty where the key is missing."""
        try:
            return read_list(self.text(node))[0] if node is not None else ()
        except InputError as error:
            self.fail(node, error.what, "")

    def items(self, node: Any, what: str) -> Iterator[Any]:
        """The items of a list."""
        if node is None or node.id != "sequence":
            self.fail(node, f"{what}: a list is required")
        yield from node.value

    def keys(self, node: Any) -> dict[str, Any]:
        """The keys and values of a mapping."""
        if node.id != "mapping":
            self.fail(node, "keys with values are required")
        return {self.text(key): value for key, value in node.value}

    def text(self, node: Any) -> str:
        """The text of a scalar."""
        if node.id != "scalar":
            self.fail(node, "a word or a number is required")
        return str(node.value)
