"""Which nodes are free, and which have a job: what `sinfo` prints, in three forms.

- lines `n001|idle|batch*` of `sinfo -h -N -o '%N|%T|%P'`, the layout of our own call;
- any other text with a header that names NODELIST and STATE (`sinfo`, `sinfo -N`, `sinfo -N -l`);
- `sinfo --json`, of 22.05 (nodes) and of 23.11 and later (groups of nodes).

A node is free that a job could have now: idle, or powered down. One that drains, does not answer or
runs a job is not (on a cluster that shares nodes, a part of it may be: **Weak spot**).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sar_agent.errors import InputError, Unavailable
from sar_agent.util.hostlist import expand
from sar_agent.util.programs import ProgramFailed, run_program
from sar_agent.util.text_files import json_part, read_text

FORMAT = "%N|%T|%P"
COMMAND = f"sinfo -h -N -o '{FORMAT}'"
_FREE, _PLANNED = ("idle", "planned", "plnd"), ("planned", "plnd")
_ALLOCATED = ("allocated", "alloc", "mixed", "mix", "draining", "drng", "failing", "failg")
"""A node that drains or fails and has a job has a word of its own in text."""
_OPTIONS = ("--noheader", "--Node", "--all", "--local", "-o", FORMAT)
_WAITS = "~#-"
"""Marks of a state in text that leave the node free: powered down, powering up, planned."""
_FREE_FLAGS = {"POWERED_DOWN", "POWERING_UP", "POWER_UP", "PLANNED", "CLOUD", "DYNAMIC_NORM"}
_STATE = re.compile(r"[A-Za-z_]+(?:\+[A-Za-z_]+)*[*~#!%$@^+-]*$")
"""`idle~`, and with flags, `IDLE+PLANNED`, as sinfo's StateComplete has it."""
_SECONDS, _MOST = 10.0, 64 * 2**20


class FreeNodes(NamedTuple):
    """Names of nodes."""

    free: frozenset[str]
    """Nodes that a job could have now."""
    planned: frozenset[str]
    """Those of them that Slurm keeps for a pending job."""
    nodes: frozenset[str]
    """All nodes that are listed."""
    allocated: frozenset[str]
    """Nodes with a job. One whose job has ended and is being cleaned up is none."""
    left_out: tuple[str, ...]
    """Lines and entries that could not be read."""


def free_nodes(file: Path | None, partition: str | None = None) -> FreeNodes:
    """The nodes of a file, or those that sinfo prints now; of all partitions, or of one. Raises
    `InputError`, and `Unavailable` where sinfo does not answer."""
    if file is None:
        command = ("sinfo", *_OPTIONS)
        remedy = f"run this where Slurm's commands work, or give the output of {COMMAND} as --nodes"
        try:
            text = run_program(command, deadline=_SECONDS, most=_MOST, remedy=remedy)
        except ProgramFailed as error:
            raise Unavailable(f"sinfo does not reach Slurm from here; {remedy}") from error
    else:
        text = read_text(file)
    return parse_sinfo(text, file, partition)


def allocated_nodes(
    hosts: Collection[str], command: Sequence[str] = ("sinfo",), deadline: float = _SECONDS
) -> frozenset[str]:
    """Those of `hosts` that `command`, within `deadline` seconds, shows with a job now. Raises
    `Unavailable` where it does not say that of each of them."""
    try:
        text = run_program(
            (*command, *_OPTIONS),
            deadline=deadline,
            most=_MOST,
            remedy="install Slurm's client commands",
            environment={k: v for k, v in os.environ.items() if not k.startswith("SINFO_")},
            quiet=True,
        )
        found = parse_sinfo(text, None)
    except InputError as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if missing := sorted({*hosts} - found.nodes - found.allocated):
        raise Unavailable(f"{command[0]} does not show {', '.join(missing[:5])}")
    return found.allocated.intersection(hosts)


def parse_sinfo(text: str, source: Path | None, partition: str | None = None) -> FreeNodes:
    """The nodes in a text of `sinfo`. Raises `InputError` where it is none, or where no node is in
    the partition."""
    bad: list[str] = []
    json = json_part(text)
    rows = [*(_of_json(json, bad) if json else _of_lines(text, bad))]
    if not rows or len(bad) > len(rows):
        why = f" ({bad[0]})" if bad else ""
        raise InputError(
            f"this is not the output of sinfo{why}", file=source, remedy=f"save it with: {COMMAND}"
        )
    chosen = [row for row in rows if partition in (None, row[2])]
    if not chosen:
        known = ", ".join(sorted({row[2] for row in rows})[:8])
        raise InputError(f"no partition is called {partition!r}", remedy=f"there are {known}")

    def nodes(kind: str) -> frozenset[str]:
        return frozenset(name for hosts, kinds, _ in chosen if kind in kinds for name in hosts)

    free, planned, allocated = nodes("free"), nodes("planned"), nodes("allocated")
    return FreeNodes(free, planned, nodes("node"), allocated, tuple(bad))


_Row = tuple[tuple[str, ...], tuple[str, ...], str]
"""Names of nodes, what they are (`node`, `free`, `planned`, `allocated`), partition."""


def _of_lines(text: str, bad: list[str]) -> Iterator[_Row]:
    layout = {"NODELIST": 0, "STATE": 1, "PARTITION": 2}
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    for place, (_, line) in enumerate(lines[:5]):
        header = [name.upper() for name in _columns(line)]
        header = ["STATE" if name == "STATECOMPLETE" else name for name in header]
        if "NODELIST" in header and "STATE" not in header:
            bad += [f"no column STATE beside NODELIST: {line[:60]!r}"] * 2
            return
        if "NODELIST" in header:
            layout = {name: at for at, name in reversed([*enumerate(header)])}
            lines = lines[place + 1 :]
            break
    for number, line in lines:
        columns = _columns(line)
        try:
            state, names = columns[layout["STATE"]], expand(columns[layout["NODELIST"]])
            partition = columns[layout["PARTITION"]] if "PARTITION" in layout else ""
        except (IndexError, InputError):
            state = ""
        if not _STATE.match(state):
            bad.append(f"line {number}: {line[:60]!r}")
            continue
        words = state.rstrip("*~#!%$@^+-")
        marks = set(state[len(words) :])
        word, *flags = words.lower().split("+")
        free = word in _FREE and marks <= {*_WAITS} and {f.upper() for f in flags} <= _FREE_FLAGS
        planned = word in _PLANNED or "planned" in flags or "-" in marks
        yield names, _kinds(free, planned, word in _ALLOCATED), partition.rstrip("*")


def _columns(line: str) -> list[str]:
    return [each.strip() for each in (line.split("|") if "|" in line else line.split())]


def _of_json(text: str, bad: list[str]) -> Iterator[_Row]:
    try:
        document = json.loads(text)
        entries = document.get("nodes") or document.get("sinfo") or []
    except (AttributeError, ValueError, RecursionError) as error:
        bad.append(f"no JSON: {str(error)[:100]}")
        return
    for place, entry in enumerate(entries if isinstance(entries, list) else (), 1):
        try:
            names, states, partitions = _entry(entry)
        except (AttributeError, KeyError, TypeError, IndexError):
            bad.append(f"entry {place}")
            continue
        free = states[:1] == ["IDLE"] and {*states[1:]} <= _FREE_FLAGS
        allocated = states[:1] in (["ALLOCATED"], ["MIXED"])
        for partition in partitions:
            yield names, _kinds(free, "PLANNED" in states, allocated), partition


def _kinds(free: bool, planned: bool, allocated: bool) -> tuple[str, ...]:
    planned = free and planned
    return ("node", *("free",) * free, *("planned",) * planned, *("allocated",) * allocated)


def _entry(entry: dict[str, Any]) -> tuple[tuple[str, ...], list[str], list[str]]:
    if "name" in entry:
        state = entry["state"]
        states = [*state] if isinstance(state, list) else [state, *entry.get("state_flags", ())]
        partitions = [*map(str, entry["partitions"])] or [""]
        return (str(entry["name"]),), [s.upper() for s in states], partitions
    names = tuple(map(str, entry["nodes"]["nodes"]))
    states = [s.upper() for s in entry["node"]["state"]]
    return names, states, [str(entry["partition"]["name"])]
