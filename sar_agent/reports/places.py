"""What a user names: switches, ports, cables and hosts of a fabric."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.reports.wording import some
from sar_agent.slurm.hostlist import expand_few

_PORT = re.compile(
    r"(?P<node>.+?)\"?(?: \((?P<guid>0x[0-9a-fA-F]{1,16})\))?"
    r"(?:\[(?P<port>\d{1,3})\]|:(?P<colon>\d{1,3}))(?: (?:–|->|<->|-) .+)?$"
)
_LIST = re.compile(r"\[\d[\d,-]*\]")
MOST_LISTED = 100_000
_GUID = re.compile(r"0x[0-9a-fA-F]{1,16}$")


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
    cable as our reports print it (`"A"[1] – "B"[2]`), a host, hosts by a list as Slurm writes it
    (`n[9-12]`), or, by a pattern such as `rack12-*`, switches and hosts. Raises `InputError`, with
    similar names."""
    switches: set[int] = set()
    channels: set[int] = set()
    terminals: set[int] = set()
    for text in map(str.strip, named):
        if found := _switches(fabric, text, patterns=False):
            switches |= found
        elif match := _PORT.match(text):
            channel, terminal = _port(fabric, match)
            channels |= channel
            terminals |= terminal
        elif ports := fabric.hosts.get(text):
            terminals |= set(ports)
        elif listed := _listed(fabric, text):
            terminals |= {t for host in listed for t in fabric.hosts[host]}
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
    return {s for s, known in enumerate(fabric.switch_name) if fnmatchcase(known, name)}


def _listed(fabric: Fabric, text: str) -> list[str]:
    """The hosts of a list of which at least one is known; none where the text is no such list.
    Raises `InputError` for the first that is not known."""
    if "," not in text and not _LIST.search(text):
        return []
    try:
        hosts = expand_few(text, MOST_LISTED)
    except InputError:
        return []
    if not any(host in fabric.hosts for host in hosts):
        return []
    for host in hosts:
        if host not in fabric.hosts:
            raise _unknown(fabric, host)
    return list(hosts)


def _hosts(fabric: Fabric, pattern: str) -> set[int]:
    return {t for host, of in fabric.hosts.items() if fnmatchcase(host, pattern) for t in of}


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
