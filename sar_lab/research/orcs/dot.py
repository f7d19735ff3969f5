"""Reads ORCS's graph of a network and its order of the hosts (`formats/orcs.py` describes both).

Of the DOT language it reads one `digraph`, nodes, edges and chains of edges, attributes, default
attributes of edges, and comments; no subgraphs, which ORCS's tools do not write. A node whose name
begins with H is a host; the rest of its name is its GUID in hexadecimal. Where several edges of a
node name the same host, the first one counts.

The reader is ours because no library was found to serve. pydot 4.0 (which networkx uses) takes 10 s
where this takes 0.14 s (384 hosts, 334 kB), gives no lines for nodes and edges, prints errors of
syntax instead of raising them, reads `--` in a digraph as `->`, and drops the place of a default
attribute, which decides to which edges it applies.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.model import I32
from sar_agent.util.text_files import read_text
from sar_lab.research.orcs.network import NONE, Network

_TOKEN = re.compile(
    r"""(?P<gap>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#[^\n]*)
      |(?P<sign>->|--|[\[\]{};,=:])
      |"(?P<quoted>(?:[^"\\]|\\.)*)"
      |(?P<word>[^\s"\[\]{};,=:\-]+|-(?:\d+(?:\.\d*)?|\.\d+))""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_BETWEEN = re.compile(r"[, \t\n]+")


@dataclass
class _Token:
    text: str
    line: int
    sign: bool


@dataclass
class _Graph:
    nodes: dict[str, int] = field(default_factory=dict)
    """Name to line, in order of appearance."""
    edges: list[tuple[str, str, str, int]] = field(default_factory=list)
    """From, to, comment, line."""


def read_network(path: Path) -> Network:
    """The network in a DOT file. Raises `InputError` with file and line."""
    return _network(path, _Parser(path).graph())


def read_order(path: Path, network: Network) -> tuple[I32, int]:
    """(hosts in the file's order, GUIDs that are not in the network). One GUID a line, hexadecimal,
    `#` comments. Raises `InputError`."""
    host = {int(guid): h for h, guid in enumerate(network.guid)}
    found: list[int] = []
    seen: dict[int, int] = {}
    unknown = 0
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        words = raw.partition("#")[0].split()
        if not words:
            continue
        guid = _guid(words[0])
        if guid is None or len(words) > 1:
            raise InputError(
                f"{raw.strip()[:40]!r} is not a GUID", file=path, line=number, remedy="e.g. 0x2c90"
            )
        if guid in seen:
            raise InputError(
                f"GUID {words[0]} is also in line {seen[guid]}", file=path, line=number
            )
        seen[guid] = number
        if guid in host:
            found.append(host[guid])
        else:
            unknown += 1
    return np.array(found, np.int32), unknown


def _guid(text: str) -> int | None:
    try:
        guid = int(text, 16)
    except ValueError:
        return None
    return guid if 0 <= guid < 1 << 64 else None


class _Parser:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.tokens = self._split(read_text(path))
        self.next = next(self.tokens)

    def graph(self) -> _Graph:
        """Parses the whole file."""
        if self.next.text == "strict":
            self._take()
        start = self._take()
        if start.text != "digraph":
            raise self._wrong(start, "the file must begin with `digraph`")
        if not (self.next.sign and self.next.text == "{"):
            self._take()
        self._sign("{")
        graph, default = _Graph(), ""
        while not (self.next.sign and self.next.text == "}"):
            if self.next.sign and self.next.text == ";":
                self._take()
                continue
            default = self._statement(graph, default)
        return graph

    def _statement(self, graph: _Graph, default: str) -> str:
        first = self._name()
        if self._if("="):
            self._name()
            return default
        if first.text in ("node", "edge", "graph"):
            comment = self._attributes(default)
            return comment if first.text == "edge" else default
        if first.text == "subgraph":
            raise self._wrong(first, "subgraphs are not supported")
        chain = [first]
        while self._if("->"):
            chain.append(self._name())
        comment = self._attributes(default)
        for each in chain:
            graph.nodes.setdefault(each.text, each.line)
        for a, b in itertools.pairwise(chain):
            graph.edges.append((a.text, b.text, comment, a.line))
        return default

    def _attributes(self, comment: str) -> str:
        """Parses attributes; returns the value of `comment`, or else the given default."""
        while self._if("["):
            while not self._if("]"):
                name = self._name()
                value = self._name().text if self._if("=") else ""
                if name.text == "comment":
                    comment = value
                if not self._if(","):
                    self._if(";")
        return comment

    def _name(self) -> _Token:
        token = self._take()
        if token.sign:
            raise self._wrong(token, "a name was expected")
        if self.next.sign and self.next.text == ":":
            raise self._wrong(token, "ports of nodes are not supported")
        return token

    def _if(self, sign: str) -> bool:
        if self.next.sign and self.next.text == sign:
            self._take()
            return True
        return False

    def _sign(self, sign: str) -> None:
        if not self._if(sign):
            raise self._wrong(self.next, f"`{sign}` was expected")

    def _take(self) -> _Token:
        token = self.next
        if not token.text and token.sign:
            raise self._wrong(token, "the file ends too early")
        self.next = next(self.tokens)
        return token

    def _wrong(self, token: _Token, what: str) -> InputError:
        found = f" (found {token.text[:30]!r})" if token.text else ""
        return InputError(what + found, file=self.path, line=token.line, remedy="ORCS's dot format")

    def _split(self, text: str) -> Iterator[_Token]:
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match:
                raise InputError(f"cannot read {text[at : at + 20]!r}", file=self.path, line=line)
            kind = match.lastgroup
            if kind == "quoted":
                plain = match["quoted"].replace("\\\n", "").replace('\\"', '"')
                yield _Token(plain, line, False)
            elif kind != "gap":
                yield _Token(match[0], line, kind == "sign")
            line += match[0].count("\n")
            at = match.end()
        while True:
            yield _Token("", line, True)


def _network(path: Path, graph: _Graph) -> Network:
    hosts = [name for name in graph.nodes if name.startswith("H")]
    guid: dict[int, str] = {}
    for name in hosts:
        number = _guid(name[1:])
        line = graph.nodes[name]
        if number is None:
            raise InputError(
                f"host {name!r} has no GUID in its name",
                file=path,
                line=line,
                remedy="H and a hex number",
            )
        if number in guid:
            raise InputError(
                f"hosts {guid[number]!r} and {name!r} have the same GUID", file=path, line=line
            )
        guid[number] = name
    if len(hosts) < 2:
        raise InputError("fewer than two hosts", file=path, remedy="names of hosts begin with H")
    out: dict[str, list[int]] = {name: [] for name in graph.nodes}
    for e, (a, _, _, _) in enumerate(graph.edges):
        out[a].append(e)
    plain = {name for name in hosts if len(out[name]) == 1 and graph.edges[out[name][0]][2] == "*"}
    tables = [name for name in graph.nodes if name not in plain]
    host = {name: h for h, name in enumerate(hosts)}
    place = {name: v for v, name in enumerate(tables)}
    place |= {name: len(tables) + host[name] for name in plain}
    hop = np.full((len(tables), len(hosts)), NONE, np.uint32)
    for v, name in enumerate(tables):
        for e in reversed(out[name]):  # so that the first edge remains
            hop[v, _towards(graph.edges[e][2], host)] = e
    return Network(
        np.array(list(guid), np.uint64),
        tuple(hosts),
        hop,
        np.array([place[b] for _, b, _, _ in graph.edges], np.uint32),
        np.array([out[name][0] if name in plain else NONE for name in hosts], np.uint32),
        np.array([place[name] for name in hosts], np.uint32),
    )


def _towards(comment: str, host: dict[str, int]) -> slice | list[int]:
    """The hosts that an edge leads to; like ORCS, this ignores names that are no hosts."""
    if comment == "*":
        return slice(None)
    return [host[name] for name in _BETWEEN.split(comment) if name in host]
