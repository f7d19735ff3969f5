"""The fabric format `net`: reader and writer of ibsim's network files.

The writer must respect how ibsim 0.10 reads a file:

- A line is at most 254 bytes, a node id 64 (31 to attach to, by SIM_HOST), a description 63;
  ids hold no `"`, `#` or `@`, and a `=` after the peer's id is taken for a port option.
- A switch's port GUID is its node GUID; port n of an HCA has GUID `caguid + n`, always. Real HCAs
  often give port 1 the node's GUID, so `caguid=` here is the port GUID less the port's number.
- Width and speed come from the line's last `lid N 4xHDR`; both ends must agree. ibsim does not know
  NDR and XDR, which are written as HDR.
- ibsim's ports start with the LIDs and LMC of these lines, and OpenSM keeps them.
- A link that is down cannot be written: it is left out. `do Unlink` has no effect inside a file.

Information that this loses is in comments for our reader: `#sar ` and one JSON object per node.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.hostnames import HostMapper, Kind
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import EXTRAS, NodeRecord, PortRecord, parse_lines
from sar_agent.fabric.rates import parse_rate
from sar_agent.util.text_files import write_text

_HEADER = re.compile(r'^(?:Switch|Hca|Ca)\s*\d+\s*"', re.MULTILINE)
_DEFAULT_RATE = parse_rate("4xSDR")
_FASTEST = "4xHDR"
_HOST_ID = re.compile(r"[A-Za-z0-9._-]{1,31}")
_SWITCH_ID = re.compile(r"[A-Za-z0-9._:;/+,()-]{1,60}")
_GUID_ID = re.compile(r"[SHRP]-[0-9a-f]{16}")
_CHUNK = 200
_EXTRAS: dict[str, type] = {
    "description": str,
    "host": str,
    "kind": int,
    "node_guid": int,  # where `caguid=` is another
    "port": int,  # the HCA's port number, where the one in the file is another
    "rates": dict,  # port to `4xNDR` or Gbit/s
    "down": list,  # [port, peer id, peer port, Gbit/s, LID, LMC] of cables that are down
}


def read_ibsim_net(text: str, name: str = "file", mapper: HostMapper | None = None) -> Fabric:
    """The fabric of the text; `name` is for messages.

    Hand-written files may leave out GUIDs (then counted up, as ibsim does), descriptions (then the
    id), LIDs, width and speed (then 4xSDR, ibsim's default). `include`, `module` and aliases are
    refused. Raises `InputError`.
    """
    nodes, notes = parse_lines(text, name, strict=False)
    if not nodes:
        raise InputError("no node in it: this is not an ibsim network", file=name)
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        try:
            _apply_extras(node, by_id)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"bad #sar comment ({error!r})", file=name, line=node.line) from error
    return assemble(name, nodes, mapper, notes=notes, default_rate=_DEFAULT_RATE)


class IbsimNet:
    """The fabric format `net`."""

    def recognises(self, text: str) -> bool:
        return bool(_HEADER.search(text))

    read = staticmethod(read_ibsim_net)


def _apply_extras(node: NodeRecord, by_id: dict[str, NodeRecord]) -> None:
    for key, value in node.extras.items():
        if not isinstance(value, _EXTRAS[key]):
            raise TypeError(key)
    Kind(node.extras.get("kind", 0))
    for port, given in node.extras.get("rates", {}).items():
        rate = parse_rate(given) if isinstance(given, str) else float(given)
        node.ends = [end._replace(rate=rate) if end.port == int(port) else end for end in node.ends]
        for end in node.ends:
            if end.port == int(port):  # the peer's line says HDR at most
                peer = by_id[end.peer]
                peer.ends = [
                    far._replace(rate=rate) if far.port == end.peer_port else far
                    for far in peer.ends
                ]
    for port, peer_id, peer_port, rate, lid, lmc in node.extras.get("down", ()):
        peer, line, speed = by_id[peer_id], node.line, float(rate)
        node.ends.append(
            PortRecord(
                int(port), 0, int(lid), int(lmc), peer_id, int(peer_port), 0, 0, speed, False, line
            )
        )
        peer.ends.append(
            PortRecord(int(peer_port), 0, 0, 0, node.id, int(port), 0, int(lid), speed, False, line)
        )


@dataclass(slots=True)
class _Adapter:
    """A `Ca` record: ports whose GUIDs are `guid` plus their number."""

    terminals: list[int]
    guid: int
    ports: dict[int, int]  # terminal to port number here
    id: str = ""


def net_ids(fabric: Fabric) -> tuple[list[str], list[str]]:
    """Node ids in the `.net` of this fabric: S of switches, T of the HCA of each terminal.

    The id is the name of a switch, or of a host with one HCA, where that is legal and unique; else
    `S-<guid>` or `H-<guid>`. An HCA whose ports' GUIDs are not consecutive is several nodes to
    ibsim, `P-<port guid>`.
    """
    switch_ids, adapters = _records(fabric)
    terminal_ids = [""] * fabric.terminals
    for adapter in adapters:
        for terminal in adapter.terminals:
            terminal_ids[terminal] = adapter.id
    return switch_ids, terminal_ids


def write_ibsim_net(fabric: Fabric, path: str | Path) -> None:
    """Write the file in one step, with nodes in the order of `fabric`'s source.

    `read_ibsim_net` returns the same fabric, apart from its name and notes. Raises `InputError`
    where the file cannot be written.
    """
    write_text(Path(path), "\n".join(_lines(fabric)))


def _records(fabric: Fabric) -> tuple[list[str], list[_Adapter]]:
    taken = {int(guid) for guid in fabric.switch_guid}
    groups: dict[tuple[object, ...], list[int]] = {}
    for t in range(fabric.terminals):
        base = int(fabric.terminal_guid[t]) - int(fabric.terminal_port_number[t])
        key = (
            int(fabric.terminal_node_guid[t]), base, fabric.terminal_description[t],
            fabric.terminal_host[t], int(fabric.terminal_kind[t]),
        )  # fmt: skip
        groups.setdefault(key, []).append(t)
    numbers = fabric.terminal_port_number.tolist()
    guids = fabric.terminal_guid.tolist()
    adapters = []
    for members in groups.values():
        base = guids[members[0]] - numbers[members[0]]
        if base > 0 and base not in taken:
            taken.add(base)
            adapters.append(_Adapter(members, base, {t: numbers[t] for t in members}))
            continue
        for t in members:  # the base is another node's GUID: use another port number
            port = next(p for p in range(1, 255) if guids[t] - p not in taken)
            taken.add(guids[t] - port)
            adapters.append(_Adapter([t], guids[t] - port, {t: port}))
    _name_records(fabric, adapters)
    names = Counter(fabric.switch_name)
    hosts = set(fabric.terminal_host)
    switch_ids = [
        name
        if names[name] == 1
        and name not in hosts
        and _SWITCH_ID.fullmatch(name)
        and not _GUID_ID.fullmatch(name)
        else f"S-{guid:016x}"
        for name, guid in zip(fabric.switch_name, fabric.switch_guid.tolist(), strict=True)
    ]
    return switch_ids, adapters


def _name_records(fabric: Fabric, adapters: list[_Adapter]) -> None:
    per_host = Counter(fabric.terminal_host[a.terminals[0]] for a in adapters)
    per_node = Counter(int(fabric.terminal_node_guid[a.terminals[0]]) for a in adapters)
    for adapter in adapters:
        first = adapter.terminals[0]
        host, guid = fabric.terminal_host[first], int(fabric.terminal_node_guid[first])
        if per_host[host] == 1 and _HOST_ID.fullmatch(host) and not _GUID_ID.fullmatch(host):
            adapter.id = host
        elif per_node[guid] == 1:
            adapter.id = f"H-{guid:016x}"
        else:
            adapter.id = f"P-{int(fabric.terminal_guid[first]):016x}"


def _lines(fabric: Fabric) -> Iterator[str]:
    switch_ids, adapters = _records(fabric)
    owner = {t: adapter for adapter in adapters for t in adapter.terminals}
    at_switch: list[list[int]] = [[] for _ in switch_ids]
    for t, switch in enumerate(fabric.terminal_switch.tolist()):
        at_switch[switch].append(t)
    order = [(int(fabric.switch_position[s]), 0, s) for s in range(fabric.switches)]
    order += [(int(fabric.terminal_position[a.terminals[0]]), 1, i) for i, a in enumerate(adapters)]
    yield "# ibsim network, written by sar-agent; '#sar' lines hold what ibsim does not know"
    yield ""
    for _, kind, index in sorted(order):
        if kind:
            yield from _adapter_lines(fabric, adapters[index], switch_ids)
        else:
            yield from _switch_lines(fabric, index, switch_ids, at_switch[index], owner)
        yield ""


def _switch_lines(
    fabric: Fabric, s: int, ids: list[str], terminals: list[int], owner: dict[int, _Adapter]
) -> Iterator[str]:
    extras: dict[str, Any] = {}
    description = _plain(fabric.switch_name[s], extras)
    rates: dict[str, float | str] = {}
    rows = []
    for c in range(int(fabric.channel_offset[s]), int(fabric.channel_offset[s + 1])):
        back = int(fabric.channel_reverse[c])
        port, far = int(fabric.channel_port[c]), int(fabric.channel_target[c])
        far_port, rate = int(fabric.channel_port[back]), float(fabric.channel_rate[c])
        if fabric.channel_up[c]:
            name = fabric.channel_speed(c)
            speed = _speed(rate, name, port, rates if c < back else {})
            lid = int(fabric.switch_lid[far])
            rows.append(
                (port, f'[{port}] "{ids[far]}"[{far_port}] # "{ids[far]}" lid {lid} {speed}')
            )
        elif c < back:
            extras.setdefault("down", []).append([port, ids[far], far_port, rate, 0, 0])
    for t in terminals:
        if fabric.terminal_up[t]:
            port, a = int(fabric.terminal_switch_port[t]), owner[t]
            speed = _speed(float(fabric.terminal_rate[t]), fabric.terminal_speed(t), port, {})
            far_port, lid = a.ports[t], int(fabric.terminal_lid[t])
            guid = int(fabric.terminal_guid[t])
            rows.append(
                (port, f'[{port}] "{a.id}"[{far_port}]({guid:x}) # "{a.id}" lid {lid} {speed}')
            )
    if rates:
        extras["rates"] = rates
    yield f"switchguid=0x{int(fabric.switch_guid[s]):x}"
    yield (
        f'Switch {int(fabric.switch_ports[s])} "{ids[s]}" # "{description}" '
        f"enhanced port 0 lid {int(fabric.switch_lid[s])} lmc 0"
    )
    yield from (row for _, row in sorted(rows))
    yield from _extras(extras)


def _adapter_lines(fabric: Fabric, adapter: _Adapter, switch_ids: list[str]) -> Iterator[str]:
    extras: dict[str, Any] = {}
    first = adapter.terminals[0]
    description = fabric.terminal_description[first]
    node_guid, kind = int(fabric.terminal_node_guid[first]), int(fabric.terminal_kind[first])
    host, _, guessed = HostMapper()(description)
    if (host or f"H-{node_guid:016x}") != fabric.terminal_host[first]:
        extras["host"] = fabric.terminal_host[first]
    if guessed != kind:
        extras["kind"] = kind
    if node_guid != adapter.guid:
        extras["node_guid"] = node_guid
    description = _plain(description, extras)
    rates: dict[str, float | str] = {}
    rows = []
    for t in adapter.terminals:
        port, s = adapter.ports[t], int(fabric.terminal_switch[t])
        if port != fabric.terminal_port_number[t]:
            extras["port"] = int(fabric.terminal_port_number[t])
        far_port, lid = int(fabric.terminal_switch_port[t]), int(fabric.terminal_lid[t])
        rate = float(fabric.terminal_rate[t])
        if fabric.terminal_up[t]:
            speed = _speed(rate, fabric.terminal_speed(t), port, rates)
            ident = switch_ids[s]
            rows.append(
                f'[{port}]({int(fabric.terminal_guid[t]):x}) "{ident}"[{far_port}] # lid {lid} '
                f'lmc {fabric.lmc} "{ident}" lid {int(fabric.switch_lid[s])} {speed}'
            )
        else:
            down = [port, switch_ids[s], far_port, rate, lid, fabric.lmc]
            extras.setdefault("down", []).append(down)
    if rates:
        extras["rates"] = rates
    yield f"caguid=0x{adapter.guid:x}"
    yield f'Ca {max(adapter.ports.values())} "{adapter.id}" # "{description}"'
    yield from rows
    yield from _extras(extras)


def _speed(rate: float, name: str, port: int, rates: dict[str, float | str]) -> str:
    """`4xHDR` for ibsim; what ibsim has no name for goes into `rates`, by its name if it has
    one."""
    known = parse_rate(name) is not None
    if known and name[-3:] not in ("NDR", "XDR"):
        return name
    rates[str(port)] = name if known else rate
    return _FASTEST


def _plain(description: str, extras: dict[str, Any]) -> str:
    """The description as ibsim accepts it; the true one goes into `extras` where it differs."""
    plain = re.sub(r'["\x00-\x1f\x7f\ufeff]', "?", description)
    plain = plain.encode(errors="replace")[:63].decode(errors="ignore")
    if plain != description or not plain:
        extras["description"] = description
    return plain


def _extras(extras: dict[str, Any]) -> Iterator[str]:
    """One JSON object over as many short comment lines as it needs: ibsim splits long ones."""
    text = json.dumps(extras, separators=(",", ":")) if extras else ""
    for start in range(0, len(text), _CHUNK):
        yield EXTRAS + text[start : start + _CHUNK]
