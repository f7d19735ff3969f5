"""Slurm's topology.conf (plugin topology/tree): which node hangs on which leaf switch.

Read as Slurm reads it (topology.conf(5)): `SwitchName=` with `Nodes=` or `Switches=`, keys in any
case, host lists, `#` comments, `\\` at the end of a line, `Include file`, `LinkSpeed=` ignored.
Names of included files are relative to the file that includes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from sar_agent.errors import InputError
from sar_agent.fabric.hostlist import expand

_PAIR = re.compile(r'(\w+)\s*=\s*("[^"]*"|[^\s"]+)(?:\s+|$)')
_INCLUDE = re.compile(r"include(?:\s*=\s*|\s+)(.+)", re.IGNORECASE)
_KEYS = {"switchname", "nodes", "switches", "linkspeed"}
_REMEDY = "a tree has lines `SwitchName=… Nodes=…` or `SwitchName=… Switches=…`"


@dataclass(frozen=True)
class SlurmSwitch:
    """One `SwitchName=` line: a leaf has `nodes`, a switch above the leaves has `children`."""

    name: str
    nodes: tuple[str, ...]
    children: tuple[str, ...]
    file: Path = field(compare=False)
    line: int = field(compare=False)


@dataclass(frozen=True)
class SlurmTopology:
    """A topology.conf.

    `switches`: by name, in the order of the file. `leaves_of`: node → the names of its leaf
    switches (one, in a file without problems). `problems`: what a strict reading would refuse,
    one sentence each. `files`: the file and all it includes, for a watcher.
    """

    switches: Mapping[str, SlurmSwitch]
    leaves_of: Mapping[str, frozenset[str]]
    problems: tuple[str, ...]
    files: tuple[Path, ...]

    @property
    def leaves(self) -> tuple[str, ...]:
        """The names of all switches that have nodes."""
        return tuple(switch.name for switch in self.switches.values() if switch.nodes)

    def leaf_of(self, host: str) -> frozenset[str]:
        """The leaf switches of `host`, empty if the file does not name it."""
        return self.leaves_of.get(host, frozenset())


def read_topology_conf(path: str | Path, *, strict: bool = True) -> SlurmTopology:
    """Read a topology.conf and its includes.

    Raises InputError with file and line for what cannot be read at all (a missing file, a line
    that is no setting, a broken host list, an include cycle). With `strict` the first structural
    problem is an error too: a switch named twice, a node on two leaves, an unknown child, a cycle
    in `Switches=`, a switch with both or neither. Without, these end up in `problems` and the map
    from nodes to leaves, which is all that the multi-switch filter needs, is kept.
    """
    reading = _Reading()
    reading.file(Path(path), ())
    problems = [*reading.problems, *_problems(reading.switches)]
    if strict and problems:
        raise problems[0]
    leaves_of: dict[str, frozenset[str]] = {}
    for switch in reading.switches.values():
        here = frozenset((switch.name,))
        for node in switch.nodes:
            leaves_of[node] = leaves_of.get(node, frozenset()) | here
    return SlurmTopology(
        MappingProxyType(reading.switches),
        MappingProxyType(leaves_of),
        tuple(map(str, problems)),
        tuple(dict.fromkeys(reading.files)),
    )


@dataclass
class _Reading:
    """What was read so far."""

    switches: dict[str, SlurmSwitch] = field(default_factory=dict)
    problems: list[InputError] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def file(self, path: Path, within: tuple[Path, ...]) -> None:
        """Read `path`; `within` are the files that include it, outermost first."""
        self.files.append(path)
        try:
            text = path.read_text(errors="replace")
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", file=path) from error
        for number, line in _logical_lines(text):
            if include := _INCLUDE.fullmatch(line):
                other = path.parent / include.group(1).strip().strip('"')
                above = (*within, path)
                if any(_same(other, one) for one in above):
                    names = " → ".join(one.name for one in (*above, other))
                    raise InputError(f"files include each other: {names}", file=path, line=number)
                self.file(other, above)
            else:
                self._setting(path, number, line)

    def _setting(self, path: Path, number: int, line: str) -> None:
        def error(what: str, remedy: str = "") -> InputError:
            return InputError(what, file=path, line=number, remedy=remedy)

        pairs: dict[str, str] = {}
        position = 0
        while position < len(line):
            pair = _PAIR.match(line, position)
            if not pair:
                raise error(f"{line[position:][:60]!r} is not key=value", _REMEDY)
            key = pair.group(1).lower()
            if key not in _KEYS or key in pairs:
                what = "stands twice" if key in pairs else "is not a key of a tree topology"
                raise error(f"{pair.group(1)}= {what}", _REMEDY)
            pairs[key] = pair.group(2).strip('"')
            position = pair.end()
        if "switchname" not in pairs:
            raise error("no SwitchName=", _REMEDY)
        try:
            nodes, children = expand(pairs.get("nodes", "")), expand(pairs.get("switches", ""))
        except InputError as problem:
            raise error(problem.what) from problem
        switch = SlurmSwitch(pairs["switchname"], nodes, children, path, number)
        if bool(nodes) == bool(children):
            what = "both Nodes= and" if nodes else "neither Nodes= nor"
            self.problems.append(error(f"switch {switch.name} has {what} Switches="))
        known = self.switches.get(switch.name)
        if known:
            self.problems.append(
                error(f"switch {switch.name} is named twice, first at {known.file}:{known.line}")
            )
            switch = SlurmSwitch(
                switch.name, known.nodes + nodes, known.children + children, known.file, known.line
            )
        self.switches[switch.name] = switch


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, joined where one ends in a backslash, with the first's number."""
    start, joined = 0, ""
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = raw.partition("#")[0].rstrip()
        start = start if joined else number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        joined = (joined + line).strip()
        if joined:
            yield start, joined
        joined = ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False  # a missing file: reading it says so


def _problems(switches: Mapping[str, SlurmSwitch]) -> Iterator[InputError]:
    """Every structural problem that is left once all lines are read."""
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
        yield _at(cycle[0], f"Switches= go in a circle: {names}")


def _at(switch: SlurmSwitch, what: str) -> InputError:
    return InputError(what, file=switch.file, line=switch.line)


def _cycles(switches: Mapping[str, SlurmSwitch]) -> Iterator[list[SlurmSwitch]]:
    """One cycle for each backward edge of a depth-first walk; without recursion."""
    done: set[str] = set()
    for root in switches:
        path: list[str] = []  # the switches being walked, from the root down
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
            elif name in path:
                yield [switches[one] for one in path[path.index(name) :]]
            elif name not in done and name in switches:
                path.append(name)
                stack.append((name, True))
                stack += [(child, False) for child in reversed(switches[name].children)]
