"""Errors that ports have counted, from the files that `counter_files.py` reads.

What counts is what a bad cable, connector or transceiver does: links that went down or had to
recover, symbols and packets that arrived broken, packets that were thrown away. Names are those of
`perfquery` and `ibqueryerrors` (PortCounters of IBA, 16.1.3.5), of `ibdiagnet2.pm`, and of PM_INFO
in a db_csv.

A reading holds totals since somebody cleared the counters. Two readings give what was added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sar_agent.counters.counter_files import FOLDER_FILES, REMEDY, Place, values_of_text
from sar_agent.counters.readings import MOST_PORTS
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.util.text_files import first_readable, passed_over, read_text

ERRORS = {
    "link_downed": ("LinkDownedCounter", "link_down_counter", "LinkDowned"),
    "link_recoveries": ("LinkErrorRecoveryCounter", "link_error_recovery_counter", "LinkRecovers"),
    "symbol_errors": ("SymbolErrorCounter", "symbol_error_counter", "SymbolErrors"),
    "receive_errors": ("PortRcvErrors", "port_rcv_errors", "RcvErrors"),
    "discards": ("PortXmitDiscards", "port_xmit_discard", "XmtDiscards"),
}
"""Our name, the worst first, to perfquery's (also db_csv's), to that of `ibdiagnet2.pm` and to
that of perfquery in OFED 1."""
_NAMES = {theirs: ours for ours, names in ERRORS.items() for theirs in names}
_NO_ERRORS = re.compile(r"^## Summary: \d+ nodes checked, 0 bad nodes found", re.MULTILINE)
"""What ibqueryerrors prints where it names no port."""
_COLUMNS = {names[0]: ours for ours, names in ERRORS.items()}


@dataclass(frozen=True)
class PortErrors:
    """Counts above 0 by port: (GUID, LID, port number), GUID or LID 0 where it is not known. Ports
    without errors have none."""

    source: str
    counts: Mapping[Place, Mapping[str, int]]
    notes: tuple[str, ...] = ()
    """What could not be read, one sentence each."""
    time: float = 0.0
    """When the counters were read, Unix seconds: what the file says, or when it was written."""

    def of(self, fabric: Fabric) -> PortErrors:
        """The same for the ports of a fabric, each by the GUID of its switch, or its own. Raises
        `InputError` where there are none."""
        owner: dict[Place, int] = {}
        ends = (fabric.terminal_guid, fabric.terminal_node_guid, fabric.terminal_lid,
                fabric.terminal_port_number)  # fmt: skip
        for guid, node, lid, port in zip(*(each.tolist() for each in ends), strict=True):
            owner |= {(guid, 0, port): guid, (node, 0, port): guid, (0, lid, port): guid}
        switches = fabric.switch_guid.tolist()
        switch = dict(zip(fabric.switch_lid.tolist(), switches, strict=True))
        switch |= dict(zip(switches, switches, strict=True))
        found = {
            (guid, 0, place[2]): counts
            for place, counts in self.counts.items()
            if (guid := owner.get(place) or switch.get(place[0] or place[1]))
        }
        if self.counts and not found:
            raise InputError(
                f"{self.source} has no port of {fabric.name}",
                remedy="give counters of this fabric",
            )
        return replace(self, counts=found)


def read_port_errors(path: str | Path) -> PortErrors:
    """The errors in a file, or in ibdiagnet's folder. Raises `InputError` where it is unreadable or
    names no port."""
    path = Path(path)
    if path.is_dir() and (found := first_readable(path, FOLDER_FILES, read_port_errors)):
        return found[0]
    text = read_text(path)
    ports, time = values_of_text(text, path.stat().st_mtime, _NAMES, _COLUMNS)
    if not _NO_ERRORS.search(text) and not 0 < len(ports.values) <= MOST_PORTS:
        raise InputError("names no port", file=path, remedy=f"{REMEDY}, or of ibqueryerrors")
    above_0 = {p: {n: c for n, c in counts.items() if c} for p, counts in ports.values.items()}
    return PortErrors(
        str(path),
        above_0,
        tuple(f"{path}: {note}" for note in passed_over(ports.bad)),
        time,
    )


def added(before: PortErrors, after: PortErrors) -> PortErrors:
    """What was added between two readings. A counter that is lower was cleared: it counts whole,
    and a note says so. Raises `InputError` where `before` is the later one."""
    if before.time > after.time:
        raise InputError(
            f"{before.source} is later than {after.source}", remedy="give the earlier one first"
        )
    counts: dict[Place, dict[str, int]] = {}
    back = [
        f"{name.replace('_', ' ')} of {port_words(place)}"
        for place, then in before.counts.items()
        for name, count in then.items()
        if after.counts.get(place, {}).get(name, 0) < count
    ]
    for place, now in after.counts.items():
        then = before.counts.get(place, {})
        more = {
            name: count - (then.get(name, 0) if then.get(name, 0) <= count else 0)
            for name, count in now.items()
        }
        counts[place] = {name: count for name, count in more.items() if count}
    notes = tuple(dict.fromkeys((*before.notes, *after.notes, *went_back(after.source, back))))
    return PortErrors(after.source, counts, notes, after.time)


def went_back(source: str, which: Sequence[str]) -> tuple[str, ...]:
    """The note on counters that are lower than before; empty where no counter is."""
    if not which:
        return ()
    more = f" and {len(which) - 1} more" * (len(which) > 1)
    return (f"{source}: {which[0]}{more} went back; what they say now counts from 0",)


def port_words(place: Place) -> str:
    """`port 3 of 0x…`, or of a LID."""
    guid, lid, port = place
    return f"port {port} of " + (f"0x{guid:016x}" if guid else f"LID {lid}")


def words(errors: Mapping[str, int]) -> str:
    """`2 link_downed, 14 symbol_errors`, the worst first."""
    return ", ".join(
        f"{errors[name]} {name.replace('_', ' ')}" for name in ERRORS if name in errors
    )
