"""Slurm's topology.conf (plugin topology/tree): which nodes are attached to which leaf switch.

The file is read as Slurm reads it (topology.conf(5)): `SwitchName=` with `Nodes=` or `Switches=`,
keys in any case, host lists, `#` comments, `\\` at the end of a line, `Include file`, `LinkSpeed=`
ignored. Names of included files are relative to the file that includes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.slurm.hostlist import expand
from sar_agent.slurm.topology import NO_FILE, SlurmSwitch, SlurmTopology, topology_of

_PAIR = re.compile(r'(\w+)\s*=\s*("[^"]*"|[^\s"]+)(?:\s+|$)')
_INCLUDE = re.compile(r"include(?:\s*=\s*|\s+)(.+)", re.IGNORECASE)
_KEYS = {"switchname", "nodes", "switches", "linkspeed"}
_REMEDY = "a tree has lines `SwitchName=… Nodes=…` or `SwitchName=… Switches=…`"


def read_topology_conf(path: str | Path, *, strict: bool = True) -> SlurmTopology:
    """Read a topology.conf and its includes.

    Raises InputError with file and line for what cannot be read at all (a missing file, a line
    that is not a setting, a broken host list, an include cycle). With `strict` the first structural
    problem is an error, too: a switch named twice, a node on two leaves, an unknown child, a cycle
    in `Switches=`, a switch with both or neither. Otherwise these are listed in `problems`, and the
    map from nodes to leaves, which is all that the multi-switch filter needs, is kept.
    """
    reading = _Reading()
    reading.file(Path(path), ())
    return topology_of(reading.switches, reading.problems, reading.files, strict=strict)


@dataclass
class _Reading:
    """The content of the files read so far."""

    switches: dict[str, SlurmSwitch] = field(default_factory=dict)
    problems: list[InputError] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def file(self, path: Path, within: tuple[Path, ...]) -> None:
        """Read `path`; `within` are the files that include it, outermost first."""
        self.files.append(path)
        try:
            text = path.read_text(errors="replace")
        except OSError as error:
            raise InputError(
                f"cannot be read ({error.strerror})", file=path, remedy=NO_FILE
            ) from error
        for number, line in _logical_lines(text):
            if include := _INCLUDE.fullmatch(line):
                other = path.parent / include.group(1).strip().strip('"')
                above = (*within, path)
                if any(_same(other, file) for file in above):
                    names = " → ".join(file.name for file in (*above, other))
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
                what = "occurs twice" if key in pairs else "is not a key of a tree topology"
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


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False  # a missing file: reading it says so
