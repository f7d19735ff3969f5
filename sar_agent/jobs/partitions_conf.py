"""OpenSM's partitions.conf: `[name][=P_Key][,flags] : port[=membership], … ;`

Read as OpenSM 3.3.23 reads it: statements end in `;`, may go over several lines, `#` comments;
ports are port GUIDs or `NONE`, `ALL`, `ALL_CAS`, `ALL_SWITCHES`, `ALL_ROUTERS`, `SELF`, or the
beginning of such a word; multicast groups (`mgid=…`) do not decide which ports communicate and are
skipped. A partition that is named again
gets more members. Errors that OpenSM would only log and skip are refused here, with their line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.model import Fabric
from sar_agent.jobs.partitions import DEFAULT_KEY, Partition
from sar_agent.util.text_files import read_text

_PORTS = {"NONE": False, "ALL": True, "ALL_CAS": True, "ALL_SWITCHES": False, "ALL_ROUTERS": False,
          "SELF": False}  # fmt: skip
"""Words for ports: whether they stand for the ports of all hosts. OpenSM takes any beginning of
one, and tries them in this order."""
_MEMBERSHIP = ("full", "limited", "both")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}|\d{1,20}")


@dataclass
class Statement:
    """A partition as written in the file."""

    name: str
    key: int
    """0: OpenSM chooses one."""
    line: int
    guids: list[tuple[int, int]] = field(default_factory=list)
    """(port GUID, line)"""
    everyone: bool = False


def read_partitions_conf(path: Path, fabric: Fabric) -> tuple[list[Partition], list[str]]:
    """(partitions without the default one, notes on ports that the fabric does not have).

    Raises `InputError` with file and line.
    """
    terminal = {int(guid): t for t, guid in enumerate(fabric.terminal_guid)}
    everyone = np.flatnonzero(fabric.terminal_kind != Kind.IN_SWITCH).tolist()
    parts, unknown = [], []
    for statement in _statements(path):
        if statement.key == DEFAULT_KEY:
            continue
        members = set(everyone) if statement.everyone else set()
        for guid, line in statement.guids:
            if guid in terminal:
                members.add(terminal[guid])
            else:
                unknown.append(f"{path}:{line}: port 0x{guid:016x} is not in the fabric")
        name = statement.name or f"0x{statement.key:04x}"
        parts.append(Partition(name, statement.key, np.array(sorted(members), np.int32)))
    return parts, unknown


def _statements(path: Path) -> list[Statement]:
    statements: dict[tuple[str, int], Statement] = {}
    of_key: dict[int, Statement] = {}
    for number, text in _logical(path):
        head, colon, body = text.partition(":")
        if not colon:
            remedy = "NAME=0xKEY : port, port ;"
            raise InputError(f"{text[:60]!r} has no `:`", file=path, line=number, remedy=remedy)
        words = [word.strip() for word in head.split(",")]
        name, equals, key_text = (part.strip() for part in words[0].partition("="))
        if equals and not _NUMBER.fullmatch(key_text):
            what = f"P_Key {key_text!r} is not a number"
            raise InputError(what, file=path, line=number, remedy="e.g. 0x8001")
        key = _number(key_text) & 0x7FFF if equals else DEFAULT_KEY * (name == "Default")
        if equals and not key:
            what = f"P_Key {key_text} of {name} is 0 but for its highest bit"
            raise InputError(what, file=path, line=number, remedy="1 to 0x7fff")
        for word in words[1:]:
            if word.startswith("defmember="):
                _membership(word[10:], "defmember", path, number)
        statement = statements.setdefault((name, key), Statement(name, key, number))
        if key and (other := of_key.setdefault(key, statement)) is not statement:
            what = f"P_Key 0x{key:04x} of {name} is that of {other.name} at line {other.line}"
            raise InputError(what, file=path, line=number, remedy="give each its own")
        _members(statement, body, path, number)
    return list(statements.values())


def _members(statement: Statement, body: str, path: Path, line: int) -> None:
    """Adds the ports of `body`, whose first line is `line`."""
    for text in body.split("\n"):
        # A multicast group and its flags go on to the end of the line.
        for word in text.partition("mgid")[0].split(","):
            port, _, membership = (part.strip() for part in word.partition("="))
            if not port:
                continue
            if membership:
                _membership(membership, port, path, line)
            word_of = next((known for known in _PORTS if known.startswith(port)), "")
            if word_of:
                statement.everyone |= _PORTS[word_of]
            elif _NUMBER.fullmatch(port):
                statement.guids.append((_number(port), line))
            else:
                remedy = "port GUIDs such as 0x2c9030001, ALL or NONE"
                raise InputError(
                    f"{port[:40]!r} is not a port", file=path, line=line, remedy=remedy
                )
        line += 1


def _membership(word: str, of: str, path: Path, line: int) -> None:
    if not any(known.startswith(word) for known in _MEMBERSHIP):
        remedy = f"one of {', '.join(_MEMBERSHIP)}"
        raise InputError(f"membership {word!r} of {of}", file=path, line=line, remedy=remedy)


def _logical(path: Path) -> Iterator[tuple[int, str]]:
    """(number of the first line, text up to `;` with its line ends)."""
    text, start = "", 0
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        line = raw.partition("#")[0]
        while True:
            part, end, line = line.partition(";")
            if not text.strip() and part.strip():
                text, start = "", number
            text += part
            if not end:
                break
            if text.strip():
                yield start, text.strip()
            text = ""
        text += "\n" if text.strip() else ""
    if text.strip():
        raise InputError(
            f"{text.strip()[:60]!r} does not end", file=path, line=start, remedy="put a `;`"
        )


def _number(text: str) -> int:
    """A number as OpenSM reads it, but a leading zero does not make it octal."""
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)
