"""Slurm's switches as its topology files describe them, and the structural problems of these.

`topology_conf.py` and `topology_yaml.py` read the two formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from sar_agent.errors import InputError
from sar_agent.util.text_files import disk_errors, read_text

Version = tuple[int, int]
"""Slurm's major version: 22.05 is (22, 5)."""

NO_FILE = "check the path, or write one with `sar-agent topology generate`"
"""The remedy where Slurm's topology file cannot be read."""


def topology_text(path: Path) -> str:
    """The file as Slurm sees it, so with a byte-order mark; gzip is undone. Raises `InputError`."""
    with disk_errors("cannot be read", path, NO_FILE):
        data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return read_text(path)
    return data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True)
class SlurmSwitch:
    """One `SwitchName=` line: a leaf has `nodes`, a switch above the leaves has `children`."""

    name: str
    nodes: tuple[str, ...]
    children: tuple[str, ...]
    file: Path = field(compare=False)
    line: int = field(compare=False)


@dataclass(frozen=True)
class Refusal:
    """What some versions of Slurm refuse and others read: those before `before`, or `since`."""

    what: str
    file: Path
    line: int
    before: Version | None = None
    since: Version | None = None

    def by(self, version: Version | None) -> bool:
        """Whether this version refuses it; None stands for any."""
        if version is None:
            return True
        return version < self.before if self.before else version >= (self.since or version)

    def __str__(self) -> str:
        when, version = ("before", self.before) if self.before else ("from", self.since)
        assert version is not None
        return f"{self.file}:{self.line}: Slurm {when} {version[0]}.{version[1]:02d} {self.what}"


@dataclass(frozen=True)
class SlurmTopology:
    """The content of a topology.conf or topology.yaml.

    `switches` are by name, in the order of the file. `leaves_of` maps a node to the names of its
    leaf switches (one, in a file without problems). `problems` are what slurmctld
    would refuse, one sentence each. `files` are the file and all its includes, for a watcher.
    `refusals` are what only some versions of Slurm take.
    """

    switches: Mapping[str, SlurmSwitch]
    leaves_of: Mapping[str, frozenset[str]]
    problems: tuple[str, ...]
    files: tuple[Path, ...]
    refusals: tuple[Refusal, ...] = ()
    blocks: bool = False
    """Whether the leaves are blocks (topology/block), which nothing joins."""
    tree: str = ""
    """The name of the tree, where the file has several."""
    trees: tuple[str, ...] = ()
    """The names of all trees in the file, where it has several."""

    @property
    def leaves(self) -> tuple[str, ...]:
        """The names of all switches that have nodes."""
        return tuple(switch.name for switch in self.switches.values() if switch.nodes)

    def leaf_of(self, host: str) -> frozenset[str]:
        """The leaf switches of `host`, empty if the file does not name it."""
        return self.leaves_of.get(host, frozenset())


@dataclass
class SwitchLines:
    """The switches of a topology file, as they are read, and what is wrong with single ones."""

    switches: dict[str, SlurmSwitch] = field(default_factory=dict)
    problems: list[InputError] = field(default_factory=list)
    blocks: bool = False
    """Whether some of them are blocks."""

    def add(self, switch: SlurmSwitch, keys: str) -> None:
        """One entry; `keys` are the file's words for nodes and children. Entries of one name are
        one switch."""
        if switch.nodes and switch.children:
            self.problems.append(_at(switch, f"switch {switch.name} has both {keys}"))
        if known := self.switches.get(switch.name):
            what = f"switch {switch.name} is named twice, first at {known.file}:{known.line}"
            self.problems.append(_at(switch, what))
            switch = replace(
                known,
                nodes=known.nodes + switch.nodes,
                children=known.children + switch.children,
            )
        self.switches[switch.name] = switch


def topology_of(
    read: SwitchLines, files: Iterable[Path], refusals: Iterable[Refusal] = ()
) -> SlurmTopology:
    """The switches with the map from nodes to leaves, and all problems: those between switches are
    a node on two leaves, an unknown child, a cycle. Raises the first where there is no switch."""
    switches = read.switches
    if read.problems and not switches:
        raise read.problems[0]
    leaves_of: dict[str, frozenset[str]] = {}
    for switch in switches.values():
        here = frozenset((switch.name,))
        for node in switch.nodes:
            leaves_of[node] = leaves_of.get(node, frozenset()) | here
    return SlurmTopology(
        MappingProxyType(dict(switches)),
        MappingProxyType(leaves_of),
        tuple(map(str, [*read.problems, *_problems(switches)])),
        tuple(dict.fromkeys(files)),
        (*refusals, *_long_names(switches)),
        read.blocks,
    )


LONGEST_NAME = 64
"""HOST_NAME_MAX: the longest name of a switch from Slurm 24.05 on."""


def _long_names(switches: Mapping[str, SlurmSwitch]) -> Iterator[Refusal]:
    for switch in switches.values():
        if len(switch.name.encode()) > LONGEST_NAME:
            what = f"takes no name longer than {LONGEST_NAME} bytes: {switch.name[:60]}…"
            yield Refusal(what, switch.file, switch.line, since=(24, 5))


def _problems(switches: Mapping[str, SlurmSwitch]) -> Iterator[InputError]:
    """Every problem between switches, found once all lines are read."""
    leaf: dict[str, SlurmSwitch] = {}
    for switch in switches.values():
        for node in switch.nodes:
            first = leaf.setdefault(node, switch)
            if first is not switch:
                yield _at(
                    switch, f"node {node} is on two leaf switches, {first.name} and {switch.name}"
                )
        for child in switch.children:
            if child not in switches:
                yield _at(switch, f"switch {switch.name} names {child}, which is not in the file")
    for cycle in _cycles(switches):
        names = " → ".join(switch.name for switch in (*cycle, cycle[0]))
        yield _at(cycle[0], f"Switches= form a cycle: {names}")


def _at(switch: SlurmSwitch, what: str) -> InputError:
    return InputError(what, file=switch.file, line=switch.line)


def _cycles(switches: Mapping[str, SlurmSwitch]) -> Iterator[list[SlurmSwitch]]:
    """One cycle for each backward edge of a depth-first search, without recursion."""
    done: set[str] = set()
    for root in switches:
        path: list[str] = []  # the switches being walked, from the root down
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
            elif name in path:
                yield [switches[above] for above in path[path.index(name) :]]
            elif name not in done and name in switches:
                path.append(name)
                stack.append((name, True))
                stack += [(child, False) for child in reversed(switches[name].children)]
