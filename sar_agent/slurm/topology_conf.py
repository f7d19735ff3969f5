"""Slurm's topology.conf: which nodes are attached to which leaf switch (topology/tree), or are in
which block (topology/block).

The file is read as slurmctld reads it (Slurm's `src/common/parse_config.c`, 22.05 to 26.05):
`SwitchName=` with `Nodes=` or `Switches=`, keys in any case, the last of several, `"…"` around
values with blanks, `#` comments, `\\` before a character or at the end of a line, `Include file`,
`LinkSpeed=` a number of 32 bits, INFINITE or UNLIMITED, which decides nothing. A `BlockName=` with
`Nodes=` is read as a leaf switch, `BlockSizes=` decides nothing. Names of included files are
relative to the file that includes them. What
`scontrol show topology` prints is read, too: lines with `Level=`, in which switches above the
leaves name all nodes below them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.slurm.conf_lists import SUFFIX_SINCE, read_list
from sar_agent.slurm.topology import (
    Refusal,
    SlurmSwitch,
    SlurmTopology,
    SwitchLines,
    topology_of,
    topology_text,
)

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*("[^"]*"|\S+)(?=\s|$)', re.ASCII)
_SHOWN = re.compile(
    r"SwitchName=(.+) Level=(\d+) LinkSpeed=\d+(?: Nodes=(.*?))?(?: Switches=(.*))?"
)
_INCLUDE = re.compile(r"include(\s*=\s*|\s+)(.+)", re.IGNORECASE)
_COMMENT = re.compile(r"((?:[^\\#]|\\.)*)#.*")
_CONTINUED = re.compile(r"(.*?)(\\+)\s*")
_KEYS = {"switchname", "nodes", "switches", "linkspeed", "blockname", "blocksizes", "blocklevels"}
_REMEDY = (
    "a tree has lines `SwitchName=… Nodes=…` or `SwitchName=… Switches=…`, blocks "
    "`BlockName=… Nodes=…`"
)
_SIZES = {"blocksizes", "blocklevels"}


def read_topology_conf(path: str | Path) -> SlurmTopology:
    """Read a topology.conf and its includes.

    Raises InputError with file and line for what cannot be read at all: a missing file, an include
    cycle, a file in which no line is a switch. What slurmctld refuses is listed in `problems`, and
    the rest is read: a line that is not a setting, a broken host list, a switch named twice or with
    both nodes and switches, a node on two leaves, an unknown child, a cycle in `Switches=`.
    """
    reading = _Reading()
    reading.file(Path(path), ())
    return topology_of(reading, reading.files, reading.refusals)


@dataclass
class _Reading(SwitchLines):
    """The content of the files read so far."""

    refusals: list[Refusal] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def file(self, path: Path, within: tuple[Path, ...]) -> None:
        """Read `path`; `within` are the files that include it, outermost first."""
        self.files.append(path)
        lines = [*_logical_lines(topology_text(path))]
        if any(_SHOWN.fullmatch(line) for _, line in lines):  # and a terminal's prompts
            lines = [each for each in lines if _SHOWN.fullmatch(each[1])]
        for number, line in lines:
            try:
                if include := _INCLUDE.fullmatch(line):
                    self._include(path, number, include[1], include[2], within)
                elif shown := _SHOWN.fullmatch(line):
                    below = "switches" if int(shown[2][:9]) else "nodes"
                    listed = shown[4] if below == "switches" else shown[3]
                    self._switch(path, number, shown[1], {below: listed or ""})
                else:
                    pairs = _pairs(line)
                    if pairs.keys() <= _SIZES:
                        continue
                    name = pairs.get("switchname") or pairs.get("blockname", "")
                    if self.switches and ("blockname" in pairs) != self.blocks:
                        raise _BadLine("SwitchName= and BlockName= in one file", remedy=_REMEDY)
                    self.blocks |= "blockname" in pairs
                    self._switch(path, number, name, pairs)
                    if (speed := pairs.get("linkspeed")) is not None:
                        _require_speed(speed)
            except _BadLine as error:
                self.problems.append(
                    InputError(error.what, file=path, line=number, remedy=error.remedy)
                )

    def _include(
        self, path: Path, number: int, word: str, name: str, within: tuple[Path, ...]
    ) -> None:
        other = path.parent / name.strip().strip('"')
        above = (*within, path)
        if any(_same(other, file) for file in above):
            names = " → ".join(file.name for file in (*above, other))
            raise InputError(f"files include each other: {names}", file=path, line=number)
        self.file(other, above)
        if "=" in word:
            raise _BadLine("Slurm takes no Include=", remedy=f"write `Include {name.strip()}`")

    def _switch(self, path: Path, number: int, name: str, pairs: dict[str, str]) -> None:
        try:
            nodes, suffixed = read_list(pairs.get("nodes", ""))
            children, also = read_list(pairs.get("switches", ""))
        except InputError as error:
            raise _BadLine(error.what, remedy=error.remedy) from error
        if suffixed or also:
            what = f"does not take text behind a bracket: {suffixed or also}"
            self.refusals.append(Refusal(what, path, number, before=SUFFIX_SINCE))
        if not pairs.keys() & {"nodes", "switches"}:  # Nodes="" is one
            what = f"takes no switch with neither Nodes= nor Switches=: {name}"
            self.refusals.append(Refusal(what, path, number, before=(25, 5)))
        self.add(SlurmSwitch(name, nodes, children, path, number), "Nodes= and Switches=")


class _BadLine(InputError):
    """What is wrong with a line, which is then skipped."""


def _pairs(line: str) -> dict[str, str]:
    """The keys and values of a line. Raises `_BadLine`."""
    if line.startswith("\ufeff"):
        raise _BadLine(
            "slurmctld stops at the byte-order mark before this line",
            remedy="save the file as UTF-8 without one",
        )
    pairs: dict[str, str] = {}
    position = 0
    while line[position:].strip():
        pair = _PAIR.match(line, position)
        if not pair:
            raise _BadLine(f"{line[position:].strip()[:60]!r} is not key=value", remedy=_REMEDY)
        key, value = pair[1].lower(), pair[2]
        if key not in _KEYS:
            raise _BadLine(f"{pair[1]}= is not a key of a tree topology", remedy=_REMEDY)
        pairs[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
        position = pair.end()
    named = [key for key in ("switchname", "blockname") if pairs.get(key)]
    if len(named) > 1:
        raise _BadLine("SwitchName= and BlockName= in one line", remedy=_REMEDY)
    if named and next(iter(pairs)) not in named:
        first = "SwitchName=" if named[0] == "switchname" else "BlockName="
        raise _BadLine(f"slurmctld stops where {first} is not the first of its line")
    if not named and not (pairs and pairs.keys() <= _SIZES):
        raise _BadLine("no SwitchName=", remedy=_REMEDY)
    return pairs


def _require_speed(value: str) -> None:
    """Raises `_BadLine` for a LinkSpeed= at which slurmctld stops (`s_p_handle_uint32`)."""
    for digits, base in (
        (r"0[xX]([0-9a-fA-F]{1,16})", 16),
        (r"(0[0-7]{0,20})", 8),
        (r"([1-9]\d{0,19})", 10),
    ):
        number = re.fullmatch(rf"\s*\+?{digits}", value)  # as C's strtoul with base 0
        if number and int(number[1], base) < 1 << 32:
            return
    if value.upper() not in ("", "INFINITE", "UNLIMITED"):
        raise _BadLine(
            f"slurmctld stops at LinkSpeed={value[:40]}",
            remedy="give a whole number up to 4294967295, or leave it out: it decides nothing",
        )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and escapes, joined where one ends in a backslash, with the first's
    number."""
    start, joined = 0, ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        start = start if joined else number
        if comment := _COMMENT.fullmatch(line):
            line = comment[1]
        elif (more := _CONTINUED.fullmatch(line)) and len(more[2]) % 2:
            joined += line.rstrip()[:-1] or " "
            continue
        joined = re.sub(r"\\(.)", r"\1", joined + line).strip()
        if joined:
            yield start, joined
        joined = ""


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False  # a missing file: reading it says so
