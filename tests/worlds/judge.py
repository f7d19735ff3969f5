"""A judge of what the plugin puts in force, from the definition. It knows no routes file, no
numbers and no code of the project: a fabric, and the entries that each switch may have.

While switches are rewritten, a packet meets at each switch any entry that this switch may have, and
it may have come by one that was replaced while it waited. A channel that such a packet holds waits
for every channel that it may take next. No packet may circle, and no channels may wait in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Port = tuple[int, int]
"""GUID of the switch, number."""


@dataclass
class Fabric:
    """What is live in one sweep."""

    switches: dict[int, int] = field(default_factory=dict)
    """GUID: its highest port."""
    cables: dict[Port, Port] = field(default_factory=dict)
    """Both directions of each cable between two switches."""
    hosts: dict[int, tuple[range, Port]] = field(default_factory=dict)
    """GUID: its LIDs, and the port of the switch where it is."""


Table = dict[int, int]
"""By LID: a port; a LID that is not in it is dropped."""


@dataclass
class Switch:
    """What one switch may have, by LID."""

    may: dict[int, set[int]] = field(default_factory=dict)
    older: dict[int, set[int]] = field(default_factory=dict)
    """By which packets may have left that are still on their way."""


class Judge:
    """Follows one world from sweep to sweep."""

    def __init__(self) -> None:
        self.fabric, self.switches = Fabric(), dict[int, Switch]()
        self.were: dict[Port, Port] = {}
        """Where the cable at each port has ended last."""

    def aged(self) -> None:
        """Time has passed: packets that came by replaced entries are gone."""
        for switch in self.switches.values():
            switch.older.clear()

    @property
    def undrained(self) -> bool:
        """Whether packets may be on their way by entries that were replaced."""
        return any(any(switch.older.values()) for switch in self.switches.values())

    def begin(self, fabric: Fabric) -> None:
        """A sweep has found this fabric. A switch that has just come up has its own table, but its
        cables carry no packets before OpenSM has written another one."""
        self.fresh = {p for p, end in fabric.cables.items() if self.fabric.cables.get(p) != end}
        self.returned = {p for p in self.fresh if self.were.get(p) == fabric.cables[p]}
        self.were |= fabric.cables
        self.fabric = fabric
        self.switches = {s: self.switches.get(s, Switch()) for s in fabric.switches}
        for s, switch in self.switches.items():  # no packet is on a cable that was dead
            for left in switch.older.values():
                left -= {port for port in left if (s, port) in self.fresh}

    def judge(self, tables: Mapping[int, Table], silent: Iterable[int] = ()) -> str:
        """What may happen while the switches get these tables; "" if nothing. A silent switch
        may keep what it has."""
        return self._circle(
            {
                s: self._entries(s, switch, table, s in silent)
                for s, switch in self.switches.items()
                for table in [tables[s]]
            }
        )

    def sent(self, tables: Mapping[int, Table], silent: Iterable[int] = ()) -> None:
        """The switches have them, but for the silent ones, which may."""
        for s, switch in self.switches.items():
            for lid in set(switch.may) | set(tables[s]):
                may, new = switch.may.get(lid, set()), tables[s].get(lid)
                now = {new} - {None}
                if s in silent:
                    switch.may[lid] = may | now
                    continue
                left = {port for port in may - now if (s, port) not in self.fresh}
                switch.older.setdefault(lid, set()).update(left)
                switch.may[lid] = now

    def steady(self, tables: Mapping[int, Table]) -> str:
        """What is wrong with these tables alone: a host that another one does not reach, or a
        circle."""
        ends = {lid: at for lids, (at, _) in self.fabric.hosts.values() for lid in lids}
        if lost := self.lost(tables, ends):
            return lost
        only = {s: {lid: {port} for lid, port in table.items()} for s, table in tables.items()}
        return self._circle(only)

    def lost(self, tables: Mapping[int, Table], ends: Mapping[int, int]) -> str:
        """Where packets of a host do not reach a LID, by the switch of each; "" if all do."""
        for lid, end in ends.items():
            for start in {at for _, (at, _) in self.fabric.hosts.values()} - {end}:
                here, hops = start, 0
                while here != end:
                    on = self.fabric.cables.get((here, tables[here].get(lid, 0)))
                    if on is None or hops > len(self.switches):
                        return f"packets from {start:x} to LID {lid} are lost at {here:x}"
                    here, hops = on[0], hops + 1
        return ""

    def _entries(self, s: int, switch: Switch, new: Table, silent: bool) -> dict[int, set[int]]:
        """By LID: every entry by which packets may leave a switch, or may have left."""
        found: dict[int, set[int]] = {}
        for lid in set(switch.may) | set(switch.older) | set(new):
            # A cable that comes up carries packets once the tables are written. A switch that does
            # not answer then still has its old ones. (Nothing is promised of moved cables.)
            kept = {
                port
                for port in switch.may.get(lid, ())
                if (s, port) not in self.fresh or (silent and (s, port) in self.returned)
            }
            kept |= {p for p in switch.older.get(lid, ()) if (s, p) not in self.fresh}
            found[lid] = kept | ({new[lid]} if lid in new else set())
        return found

    def _circle(self, entries: Mapping[int, Mapping[int, set[int]]]) -> str:
        """A circle of channels that packets of hosts can hold and wait for; "" if there is none."""
        waits: dict[Port, set[Port]] = {}
        starts = {at for _, (at, _) in self.fabric.hosts.values()}
        cables = self.fabric.cables
        for lids, _ in self.fabric.hosts.values():
            for lid in lids:
                own: dict[Port, set[Port]] = {}
                todo = sorted(starts)
                seen = set(todo)
                while todo:
                    s = todo.pop()
                    for port in entries[s].get(lid, ()):
                        on = cables.get((s, port))
                        if on is None or on[0] == s:
                            continue
                        then, v = own.setdefault((s, port), set()), on[0]
                        then |= {(v, q) for q in entries[v].get(lid, ()) if (v, q) in cables}
                        if v not in seen:
                            seen.add(v)
                            todo.append(v)
                if circle := find_circle(own):
                    return f"packets to LID {lid} can circle: {circle}"
                for channel, then in own.items():
                    waits.setdefault(channel, set()).update(then)
        circle = find_circle(waits)
        return f"a credit loop: {circle}" if circle else ""


def find_circle(waits: Mapping[Port, set[Port]]) -> str:
    """One of a graph's circles, in words."""
    count = dict.fromkeys(waits, 0)
    for then in waits.values():
        for channel in then:
            count[channel] = count.get(channel, 0) + 1
    free = [channel for channel, number in count.items() if not number]
    left = len(count)
    while free:
        left -= 1
        for channel in waits.get(free.pop(), ()):
            count[channel] -= 1
            if not count[channel]:
                free.append(channel)
    if not left:
        return ""
    return ", ".join(f"{s:x}:{p}" for (s, p), number in count.items() if number)
