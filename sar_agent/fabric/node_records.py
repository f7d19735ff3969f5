"""Parses the lines that ibnetdiscover prints and ibsim reads into node records.

Both formats have one grammar: a header line per node, then a line per cabled port. ibnetdiscover
always writes every part of a line; ibsim's hand-written files leave most parts out. So there is one
parser, and `strict` requires the parts that ibnetdiscover never leaves out: this distinguishes a
line that was cut in the middle from a short one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sar_agent.errors import InputError
from sar_agent.fabric.rates import parse_rate
from sar_agent.util.plural import plural
from sar_agent.util.text_files import passed_over

AGAIN = "run ibnetdiscover again"
EXTRAS = "#sar "
"""The prefix of comments with data that ibsim's format lacks; JSON in short lines (`ibsim_net`)."""

_HEADER = re.compile(
    r'(Switch|Hca|Ca|Rt)\s*(\d{1,9})\s*"([^"]+)"\s*'
    r'(?:#\s*(?:"(.*)"|((?:(?! enhanced port | base port | lid | lmc ).)*)))?(.*)'
)
_LABEL = r"(?:\([^()\"]{0,64}[^()\"0-9a-fA-F][^()\"]{0,64}\)|\([^()\"]{1,64}\)(?=\s*\())?\s*"
"""The label of a port that ibdiagnet 2.10 and later print before the GUID: `(1/1/2)` at switches,
`(B1D0F0/0/0/1)` at hosts. What is hexadecimal digits alone is a GUID, unless one follows."""
_PORT_HEAD = (
    rf"\[(\d{{1,9}})\](?:\[ext \d+\])?\s*{_LABEL}(?:\(([0-9a-fA-F]{{1,16}})\))?\s*"
    rf'"([^"]+)"\s*(?:\[(\d{{1,9}})\])?(?:\[ext \d+\])?\s*{_LABEL}'
    r"(?:\(([0-9a-fA-F]{1,16})\))?\s*"
)
_PORT_TAIL = (
    r'#\s*(?:lid (\d{1,9}) lmc ([0-7])\s*)?".*"\s*lid (\d{1,9}) (\S+)'
    r"(?: \w=\d+)*(?: slot \d+| \(scp\))?\s*"
)
_WHOLE_PORT = re.compile(_PORT_HEAD + _PORT_TAIL)
_PORT = re.compile(_PORT_HEAD + "(.*)")
_SWITCH_TAIL = re.compile(r"\s*(?:enhanced|base) port 0 lid (\d{1,9}) lmc ([0-7])\s*")
_GUID = re.compile(
    r"(switchguid|caguid|hcaguids|rtguid)\s*([=+])\s*(0[xX][0-9a-fA-F]+|\d{1,20}(?!\d))"
)
_OPTION = re.compile(r"([wse])=(0[xX][0-9a-fA-F]+|\d{1,9}(?!\d))")
_FOREIGN = ("include", "module")
_ANY_PORT = re.compile(
    rf"\[\d{{1,9}}\](?:\[ext \d+\])?\s*{_LABEL}" r'(?:\([0-9a-fA-F]{1,16}\))?\s*(?:"|$)'
)
"""The beginning of a port line, as opposed to a shell's `[root@mgmt ~]#` or `[1]+  Done`."""
_SHELL_JOB = re.compile(r"\[\d+\](?:[+-]?\s+[A-Z][a-z]+.*|\s+\d+)\s*")
"""`[1] 40312`, `[1]+  Done   ibnetdiscover`."""
_NODE_ID = re.compile(r"[SHR]-([0-9a-fA-F]{16})")
_IDS = ("vendid", "devid", "sysimgguid")


class PortRecord(NamedTuple):
    """One port line: the port of this side, and what the line says about the other side's port."""

    port: int
    guid: int  # of this port, 0 where the line does not say
    lid: int
    lmc: int
    peer: str
    peer_port: int
    peer_guid: int  # of the peer's port, 0 where the line does not say
    peer_lid: int
    rate: float | None
    up: bool
    line: int


class BadLine(InputError):
    """A line of a cable that cannot be read."""


@dataclass(slots=True)
class NodeRecord:
    """A header line and its port lines."""

    kind: str  # "S" switch, "H" channel adapter, "R" router
    id: str
    ports: int
    guid: int
    description: str
    lid: int
    line: int
    ends: list[PortRecord] = field(default_factory=list)
    extras: dict[str, Any] = field(default_factory=dict)


def parse_lines(text: str, file: str, *, strict: bool) -> tuple[list[NodeRecord], list[str]]:
    """All nodes in the order of the text, and notes about lines that were not understood.

    Raises `InputError` with file and line for a line that begins like a known one but is broken; of
    ibnetdiscover's ports, each of which is also in the line of its far end, a few may be.
    """
    remedy = AGAIN if strict else "see ibsim's net-examples for the format"
    nodes: list[NodeRecord] = []
    guids = {"S": 0x200000, "H": 0x100000, "R": 0}  # where ibsim itself starts counting
    bases = dict(guids)
    stated = False  # a GUID line was read, but not yet its node
    dangling = 0  # line of the first id line that no header followed
    foreign: list[int] = []
    renamed: list[int] = []  # lines of nodes whose GUID line names another node
    extras: list[tuple[int, str]] = []
    ports, broken = 0, list[BadLine]()
    node: NodeRecord | None = None

    for number, line in enumerate(text.split("\n"), 1):
        if line[:1].isspace():
            line = line.lstrip()  # pasted from a page that indents
        first = line[:1]
        if first == "[":
            if strict and _is_prompt(line, node):
                foreign.append(number)
                continue
            if node is None:
                raise _bad("a port line outside of a node", line, file, number, remedy)
            ports += 1
            try:
                node.ends.append(_end(line, node, file, number, strict, remedy))
            except BadLine as error:
                if not strict:
                    raise
                broken.append(error)
        elif first == "#":
            if line.startswith(EXTRAS):
                extras.append((number, line[len(EXTRAS) :]))
        elif not first or line.isspace():
            node = None
        elif line.startswith(("Switch", "Ca", "Hca", "Rt")):
            if strict and not dangling and not _HEADER.fullmatch(line.rstrip()):
                foreign.append(number)  # e.g. a terminal's prompt: no id lines announced it
                continue
            _close(nodes, extras, file)
            node = _node(line, file, number, strict, remedy)
            if strict and not stated:
                raise InputError(
                    f'node "{node.id}" without a line that gives its GUID',
                    file=file, line=number, remedy=remedy,
                )  # fmt: skip
            node.guid = guids[node.kind]
            if strict and (quoted := _NODE_ID.fullmatch(node.id)):
                # Chassis print a GUID of their own here; cables and tables use the quoted one.
                if int(quoted[1], 16) != node.guid:
                    renamed.append(number)
                node.guid = int(quoted[1], 16)
            guids[node.kind] += 1 if node.kind == "S" else node.ports + 1
            nodes.append(node)
            stated, dangling = False, 0
        elif match := _GUID.match(line):
            kind = {"s": "S", "r": "R"}.get(match[1][0], "H")
            value = int(match[3], 16 if match[3][:2] in ("0x", "0X") else 10)
            if value >> 64:
                raise _bad("this GUID has more than 64 bits", line, file, number, remedy)
            if match[2] == "=":
                bases[kind] = value
            guids[kind] = value if match[2] == "=" else bases[kind] + value
            stated, dangling = True, dangling or number
        elif line.startswith(_IDS):
            dangling = dangling or number
        elif not strict and line.startswith(("@", *_FOREIGN)):
            raise _bad(
                "aliases, include and module are not read here", line, file, number, "write it out"
            )
        elif not line.startswith(("Chassis", "Non-Chassis")):
            foreign.append(number)
    _close(nodes, extras, file)
    if strict and dangling:
        raise InputError(
            "the file ends before the node that this line announces",
            file=file, line=dangling, remedy=AGAIN,
        )  # fmt: skip
    notes = few_bad_lines(broken, ports, text) + not_understood(foreign)
    if renamed:
        these = "1 node has" if len(renamed) == 1 else f"{len(renamed)} nodes have"
        notes.append(
            f"{these} another GUID in the line before than in quotes, the first at line "
            f"{renamed[0]}; the quoted one is used"
        )
    return nodes, notes


def not_understood(lines: Sequence[int]) -> list[str]:
    """A note on foreign lines; none where there are none."""
    these = "1 line was" if len(lines) == 1 else f"{plural(len(lines), 'line was', 'lines were')}"
    return [f"{these} not understood, the first is line {lines[0]}"] if lines else []


def few_bad_lines(bad: Sequence[BadLine], lines: int, text: str) -> list[str]:
    """A note on lines that were passed over. Raises the first where they are more than one in
    twenty, and the last where it is the last of the text: then the text was cut."""
    if len(bad) > max(1, lines // 20):
        raise bad[0]
    if bad and bad[-1].line == text.rstrip().count("\n") + 1:
        raise bad[-1]
    return passed_over([(error.line or 0, error.what) for error in bad])


def _is_prompt(line: str, node: NodeRecord | None) -> bool:
    """Whether a line that begins with `[` is a terminal's and not a port's."""
    if node is None:
        return not _ANY_PORT.match(line)
    if line[1:2].isdigit():
        return _SHELL_JOB.fullmatch(line) is not None
    return len(line) > 1 and not line[1].isspace()


def _node(line: str, file: str, number: int, strict: bool, remedy: str) -> NodeRecord:
    match = _HEADER.fullmatch(line.rstrip())
    if not match:
        raise _bad("cannot read this node", line, file, number, remedy)
    word, ports, ident, quoted, bare, tail = match.groups()
    if not 1 <= int(ports) <= 255:
        raise _bad("a node has 1 … 255 ports", line, file, number, remedy)
    kind = {"S": "S", "R": "R"}.get(word[0], "H")
    where = _SWITCH_TAIL.fullmatch(tail)
    whole = where if kind == "S" else tail in ("", " (scp)")
    if strict and (quoted is None or not whole):
        raise _bad("this line is cut short", line, file, number, remedy)
    description = quoted if quoted is not None else (bare or "").strip() or ident
    lid = int(where[1]) if where else 0
    return NodeRecord(kind, ident, int(ports), 0, description, lid, number)


def _end(
    line: str, node: NodeRecord, file: str, number: int, strict: bool, remedy: str
) -> PortRecord:
    quoted = f": {line.strip()[:60]!r}"
    if match := _WHOLE_PORT.fullmatch(line):
        port, guid, peer, peer_port, peer_guid, lid, lmc, peer_lid, speed = match.groups()
        rate: float | None = parse_rate(speed)
    elif match := _PORT.fullmatch(line.rstrip()):
        port, guid, peer, peer_port, peer_guid, options = match.groups()
        lid = lmc = peer_lid = None
        rate = _option_rate(options)
        if strict:
            raise BadLine(f"this line is cut short{quoted}", file=file, line=number, remedy=remedy)
    else:
        raise BadLine(f"cannot read this port{quoted}", file=file, line=number, remedy=remedy)
    if strict and (not peer_port or (node.kind != "S" and not guid)):
        raise BadLine(f"this line is cut short{quoted}", file=file, line=number, remedy=remedy)
    if not 1 <= int(port) <= node.ports:
        raise _bad(f'"{node.id}" has no port {port}', line, file, number, remedy)
    return PortRecord(
        int(port), int(guid, 16) if guid else 0, int(lid or 0), int(lmc or 0), peer,
        int(peer_port or 1), int(peer_guid, 16) if peer_guid else 0, int(peer_lid or 0), rate,
        True, number,
    )  # fmt: skip


_WIDTHS = ((8, 12), (4, 8), (2, 4), (16, 2), (1, 1))
"""ibsim's bit to the number of lanes, widest first."""

_SPEEDS = (
    ("e", 8, "NDR"),
    ("e", 4, "HDR"),
    ("e", 2, "EDR"),
    ("e", 1, "FDR"),
    ("s", 4, "QDR"),
    ("s", 2, "DDR"),
)
"""ibsim's option and bit to the speed's name, fastest first."""


def _option_rate(text: str) -> float | None:
    """ibsim's `w=3 s=7 e=1` (masks of what is enabled) to the best rate they allow."""
    masks = {
        name: int(value, 16 if value[:2] in ("0x", "0X") else 10)
        for name, value in _OPTION.findall(text)
    }
    if not masks:
        return None
    width = next((width for bit, width in _WIDTHS if masks.get("w", 2) & bit), 4)
    speed = next((name for key, bit, name in _SPEEDS if masks.get(key, 0) & bit), "SDR")
    return parse_rate(f"{width}x{speed}")


def _close(nodes: list[NodeRecord], extras: list[tuple[int, str]], file: str) -> None:
    """Attach the comment lines collected since the last header to the node before them."""
    if not extras:
        return
    line = extras[0][0]
    try:
        values = json.loads("".join(text for _, text in extras))
        if not nodes or not isinstance(values, dict):
            raise ValueError("no node before it")
    except (ValueError, RecursionError) as error:
        raise InputError(f"bad #sar comment ({error})", file=file, line=line) from error
    nodes[-1].extras = values
    extras.clear()


def _bad(what: str, line: str, file: str, number: int, remedy: str) -> InputError:
    return InputError(f"{what}: {line.strip()[:60]!r}", file=file, line=number, remedy=remedy)
