"""What a user names: switches, ports, cables and hosts of a fabric."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from sar_agent.errors import InputError, TooMany
from sar_agent.fabric import Fabric
from sar_agent.fabric.name_patterns import matches, matches_host
from sar_agent.fabric.switch_names import SwitchNames, short_switch_name
from sar_agent.reports.wording import some
from sar_agent.util.hostlist import expand_few
from sar_agent.util.plural import plural

_PORT = re.compile(
    r"(?P<node>.+?)\"?(?: \((?P<guid>0x[0-9a-fA-F]{1,16})\))?"
    r"(?:\[(?P<port>\d{1,3})\]|:(?P<colon>\d{1,3}))(?: (?:–|->|<->|-) .+)?$"
)
_HCA = re.compile(r"\"?(?P<words>[^\"]+?)\"?(?: \([^()]+\))?(?:\[(?P<port>\d{1,3})\])?$")
_NODE_ID = re.compile(r"(?:[HR]-|0x)([0-9a-fA-F]{1,16})$")
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

    def __add__(self, other: Places) -> Places:
        """What either names."""
        return Places(
            *(
                tuple(sorted({*ours, *theirs}))
                for ours, theirs in (
                    (self.switches, other.switches),
                    (self.channels, other.channels),
                    (self.terminals, other.terminals),
                )
            )
        )

    def cables_of(self, fabric: Fabric) -> Places:
        """The same with all cables of the switches in place of the switches."""
        channels = set(self.channels)
        for switch in self.switches:
            channels |= set(range(*fabric.channel_offset[switch : switch + 2]))
        terminals = set(self.terminals)
        terminals |= set(np.flatnonzero(np.isin(fabric.terminal_switch, self.switches)).tolist())
        return Places((), tuple(sorted(channels)), tuple(sorted(terminals)))


NOWHERE = Places()


def find_places(fabric: Fabric, named: Iterable[str]) -> Places:
    """What these texts name: a switch (as `SwitchNames` knows it), a port (`LEAF[21]` or
    `LEAF:21`), a cable as our reports print it (`"A"[1] – "B"[2]`), a host, one of its HCAs (by its
    description or a GUID), a host list as Slurm prints it (`n[9-12,20]`), or, by a pattern such as
    `rack12-*`, switches and hosts. Raises `InputError`, with similar names, and where a list names
    what the fabric lacks."""
    found = PlaceNames(fabric)
    return sum(map(found, named), NOWHERE)


class PlaceNames:
    """The look-up of `find_places`, for one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric, self.switches = fabric, SwitchNames(fabric)

    def __call__(self, text: str) -> Places:
        """What one text names. Raises `InputError`, as `find_places`."""
        text = text.strip()
        if found := self.switches(text):
            return Places(switches=tuple(sorted(found)))
        if (listed := self._listed(text)) is not None:
            return listed
        if (match := _PORT.match(text)) and (at := self._port(match)) is not None:
            return at
        if terminals := self._terminals(text):
            return Places(terminals=tuple(sorted(terminals)))
        switches = self._switches(text)
        ports = {
            t for host, of in self.fabric.hosts.items() if matches_host(host, (text,)) for t in of
        }
        if not switches and not ports:
            raise self.unknown(match["node"].strip('"') if match else text)
        return Places(tuple(sorted(switches)), (), tuple(sorted(ports)))

    def _switches(self, pattern: str) -> set[int]:
        """All switches one of whose names matches."""
        return {
            s
            for s, known in enumerate(self.fabric.switch_name)
            if matches(known, (pattern,)) or matches_host(short_switch_name(known), (pattern,))
        }

    def _terminals(self, text: str) -> set[int]:
        """The cables of a host, of an HCA by its description, or of a port or HCA by its GUID."""
        fabric = self.fabric
        if ports := fabric.hosts.get(text.strip('"')):
            return set(ports)
        match = _HCA.match(text)
        if match is None:
            return set()
        number, words = int(match["port"] or 0), match["words"]
        found = np.array([each.strip() == words for each in fabric.terminal_description], np.bool_)
        if node := _NODE_ID.match(words):
            guid = np.uint64(int(node[1], 16))
            found |= (fabric.terminal_guid == guid) | (fabric.terminal_node_guid == guid)
        if number:
            found &= fabric.terminal_port_number == number
        return set(np.flatnonzero(found).tolist())

    def _listed(self, text: str) -> Places | None:
        """Switches and terminals of a list with brackets or commas; None where the text is none, or
        a port of a switch: then `A[1]` is the port and not `A1`."""
        if not re.search(r"[\[,]", text) or re.search(r"[*?!\s\"]", text):
            return None
        if (port := _PORT.match(text)) and self.switches(port["guid"] or port["node"]):
            return None
        try:
            names = expand_few(text, MOST_LISTED)
        except TooMany:
            raise
        except InputError:
            return None
        switches, terminals, missing = set[int](), set[int](), list[str]()
        for name in names:
            found, ports = self.switches(name), self.fabric.hosts.get(name, ())
            switches |= found
            terminals |= set(ports)
            if not found and not len(ports):
                missing.append(name)
        if not missing:
            return Places(tuple(sorted(switches)), (), tuple(sorted(terminals)))
        if (port := _PORT.match(text)) and (at := self._port(port)) is not None:
            return at
        if len(missing) == len(names):
            raise self.unknown(text, like=names[0])
        raise InputError(
            f"{text} is a host list, and {some(missing, 4)} of it "
            f"{'is' if len(missing) == 1 else 'are'} not in {self.fabric.name}",
            remedy="leave them out, or give a pattern with * or ?",
        )

    def _port(self, match: re.Match[str]) -> Places | None:
        """A port of a switch; None where no switch is called so."""
        fabric, port = self.fabric, int(match["port"] or match["colon"])
        node = match["node"].strip('"')
        found = self.switches(match["guid"] or node) or self._switches(node)
        if not found:
            return self._port_of_host(node, port)
        if len(found) > 1:
            raise InputError(
                f"{plural(len(found), 'switch is', 'switches are')} called {match['node']}",
                remedy="name one by its GUID: "
                + some([f"0x{int(fabric.switch_guid[s]):016x}" for s in sorted(found)], 4),
            )
        switch = found.pop()
        channel = int(fabric.channel_by_port[switch, port]) if port < 256 else -1
        at = (fabric.terminal_switch == switch) & (fabric.terminal_switch_port == port)
        terminals = tuple(np.flatnonzero(at).tolist())
        if channel < 0 and not terminals:
            raise InputError(
                f'no cable is at port {port} of "{fabric.switch_name[switch]}"',
                remedy=f"it has ports 1 to {fabric.switch_ports[switch]}",
            )
        return Places((), (channel,) if channel >= 0 else (), terminals)

    def _port_of_host(self, host: str, port: int) -> Places | None:
        """The cables at ports of this number of a host's HCAs; None where no host is called so."""
        ports = self.fabric.hosts.get(host, ())
        found = [t for t in ports if self.fabric.terminal_port_number[t] == port]
        if found or not ports:
            return Places((), (), tuple(found)) if found else None
        known = sorted({int(self.fabric.terminal_port_number[t]) for t in ports})
        raise InputError(
            f"no HCA of {host} has a cable at port {port}",
            remedy=f"there is one at port {' and '.join(map(str, known))}",
        )

    def unknown(self, name: str, like: str = "") -> InputError:
        """That nothing is called so, with names similar to it, or to the first of its list."""
        fabric = self.fabric
        short = [*dict.fromkeys(map(short_switch_name, fabric.switch_name))]
        known = {each.lower(): each for each in (*fabric.hosts, *fabric.switch_name, *short)}
        similar = get_close_matches((like or name).lower(), known, n=3, cutoff=0.6)
        meant = [shlex.quote(known[each]) for each in similar]
        asked = f"did you mean {' or '.join(meant)}? Or " if meant else ""
        port = shlex.quote(f"{short[0]}[1]")
        return InputError(
            f"no switch or host of {fabric.name} is called {name!r}",
            remedy=f"{asked}name a switch, a port such as {port}, or a host",
        )
