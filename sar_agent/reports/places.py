"""What a user names: switches, ports, cables and hosts of a fabric."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from sar_agent.errors import InputError, TooMany
from sar_agent.fabric import Fabric
from sar_agent.fabric.name_patterns import matches
from sar_agent.reports.wording import some
from sar_agent.slurm.hostlist import expand_few

_PORT = re.compile(
    r"(?P<node>.+?)\"?(?: \((?P<guid>0x[0-9a-fA-F]{1,16})\))?"
    r"(?:\[(?P<port>\d{1,3})\]|:(?P<colon>\d{1,3}))(?: (?:–|->|<->|-) .+)?$"
)
_GUID = re.compile(r"0x[0-9a-fA-F]{1,16}$")
MOST_LISTED = 100_000
"""The most names of a list: a slip such as n[1-99999999] must not eat the machine."""


@dataclass(frozen=True)
class Places:
    """Indices, each once and ascending."""

    switches: tuple[int, ...] = ()
    """Switches that were named as a whole."""
    channels: tuple[int, ...] = ()
    """Cables between switches: of each the direction that was named, or the lower index."""
    terminals: tuple[int, ...] = ()
    """Cables of hosts."""

    def cables_of(self, fabric: Fabric) -> Places:
        """The same with all cables of the switches in place of the switches."""
        channels = set(self.channels)
        for switch in self.switches:
            channels |= set(range(*fabric.channel_offset[switch : switch + 2]))
        terminals = set(self.terminals)
        terminals |= set(np.flatnonzero(np.isin(fabric.terminal_switch, self.switches)).tolist())
        return Places((), tuple(sorted(channels)), tuple(sorted(terminals)))


def find_places(fabric: Fabric, named: Iterable[str]) -> Places:
    """What these texts name: a switch (its name or a GUID), a port (`LEAF[21]` or `LEAF:21`), a
    cable as our reports print it (`"A"[1] – "B"[2]`), a host, a host list as Slurm prints it
    (`n[9-12,20]`), or, by a pattern such as `rack12-*`, switches and hosts. Raises `InputError`,
    with similar names, and where a list names what the fabric lacks."""
    switches: set[int] = set()
    channels: set[int] = set()
    terminals: set[int] = set()
    for text in map(str.strip, named):
        if found := _switches(fabric, text, patterns=False):
            switches |= found
        elif (listed := _listed(fabric, text)) is not None:
            switches |= listed[0]
            terminals |= listed[1]
        elif match := _PORT.match(text):
            channel, terminal = _port(fabric, match)
            channels |= channel
            terminals |= terminal
        elif ports := fabric.hosts.get(text):
            terminals |= set(ports)
        elif (found := _switches(fabric, text)) | (ports := _hosts(fabric, text)):
            switches |= found
            terminals |= ports
        else:
            raise _unknown(fabric, text)
    return Places(*(tuple(sorted(part)) for part in (switches, channels, terminals)))


def _switches(fabric: Fabric, text: str, patterns: bool = True) -> set[int]:
    name = text.strip('"')
    if _GUID.match(name):
        return set(np.flatnonzero(fabric.switch_guid == np.uint64(int(name, 16))).tolist())
    exact = {s for s, known in enumerate(fabric.switch_name) if known == name}
    if exact or not patterns:
        return exact
    return {s for s, known in enumerate(fabric.switch_name) if matches(known, (name,))}


def _listed(fabric: Fabric, text: str) -> tuple[set[int], set[int]] | None:
    """Switches and terminals of a list with brackets or commas; None where the text is none, or a
    port of a switch: then `A[1]` is the port and not `A1`."""
    if not re.search(r"[\[,]", text) or re.search(r"[*?!\s\"]", text):
        return None
    if (port := _PORT.match(text)) and _switches(fabric, port["guid"] or port["node"]):
        return None
    try:
        names = expand_few(text, MOST_LISTED)
    except TooMany:
        raise
    except InputError:
        return None
    switches, terminals, missing = set[int](), set[int](), list[str]()
    for name in names:
        found, ports = _switches(fabric, name, patterns=False), fabric.hosts.get(name, ())
        switches |= found
        terminals |= set(ports)
        if not found and not len(ports):
            missing.append(name)
    if not missing:
        return switches, terminals
    if len(missing) == len(names):
        raise _unknown(fabric, text)
    raise InputError(
        f"{text} is a host list, and {some(missing, 4)} of it "
        f"{'is' if len(missing) == 1 else 'are'} not in {fabric.name}",
        remedy="leave them out, or give a pattern with * or ?",
    )


def _hosts(fabric: Fabric, pattern: str) -> set[int]:
    return {t for host, of in fabric.hosts.items() if matches(host, (pattern,)) for t in of}


def _port(fabric: Fabric, match: re.Match[str]) -> tuple[set[int], set[int]]:
    port = int(match["port"] or match["colon"])
    found = _switches(fabric, match["guid"] or match["node"])
    if not found:
        raise _unknown(fabric, match["node"].strip('"'))
    if len(found) > 1:
        raise InputError(
            f"{len(found)} switches are called {match['node']}",
            remedy="name one by its GUID: "
            + some([f"0x{int(fabric.switch_guid[s]):016x}" for s in sorted(found)], 4),
        )
    switch = found.pop()
    channel = int(fabric.channel_by_port[switch, port]) if port < 256 else -1
    at = (fabric.terminal_switch == switch) & (fabric.terminal_switch_port == port)
    terminals = set(np.flatnonzero(at).tolist())
    if channel < 0 and not terminals:
        raise InputError(
            f'no cable is at port {port} of "{fabric.switch_name[switch]}"',
            remedy=f"it has ports 1 to {fabric.switch_ports[switch]}",
        )
    return ({channel} if channel >= 0 else set()), terminals


def _unknown(fabric: Fabric, name: str) -> InputError:
    known = [*dict.fromkeys(fabric.switch_name), *fabric.hosts]
    similar = get_close_matches(name, known, n=3, cutoff=0.6)
    meant = f"did you mean {' or '.join(similar)}? Or " if similar else ""
    return InputError(
        f"no switch or host of {fabric.name} is called {name!r}",
        remedy=f"{meant}name a switch, a port such as {fabric.switch_name[0]}[1], or a host",
    )
