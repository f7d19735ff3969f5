"""Counters from files: what perfquery or ibqueryerrors printed, ibdiagnet2's dump of counters
(`ibdiagnet2.pm`), and its `ibdiagnet2.db_csv`.

A file holds all ports at one time: that of its heading (`# File created at`), else when it was last
written, which a copy loses. Two files are a window. perfquery names ports by LID:

    # Port extended counters: Lid 6 port 1 (CapMask: 0x1200)
    PortXmitData:....................1234

ibdiagnet2 names them by GUID:

    Port=1 Lid=0x0006 GUID=0x248a070300f88ff0 Device=52000 Port Name=sw1/P1
    port_xmit_data_extended=1234

and so does ibqueryerrors, of ports with errors above its thresholds:

       GUID 0x248a070300f88ff0 port 1: [SymbolErrorCounter == 4711] [LinkDownedCounter == 3]

A db_csv has its time in it, counters in PM_INFO, and, if ibdiagnet read them twice, what they grew
by in PM_DELTA. Both have the columns of perfquery's names, and are known from files of ibdiagnet
2.10. A port's two readings are as far apart as ibdiagnet slept (`--pm_pause_time`, 1 s if not
given) and one pass over all ports took: half of what the stage took beside the sleep.
**Weak spot:** that a pass takes half is not documented; without STAGE_PERF_INFO it counts as 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from pathlib import Path

import numpy as np

from sar_agent.counters.readings import MOST_PORTS, WORD, PortReadings, PortTotals, difference
from sar_agent.errors import InputError
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.csv_sections import (
    SEEN,
    Row,
    Sections,
    guid_of,
    known,
    number_of,
    read_sections,
)
from sar_agent.fabric.model import U64
from sar_agent.util.text_files import first_readable, passed_over, read_text

REMEDY = "give the output of perfquery -x, or ibdiagnet2.pm or ibdiagnet2.db_csv of ibdiagnet"
FOLDER_FILES = ("ibdiagnet2.db_csv", "ibdiagnet2.pm")
_PERFQUERY_PORT = re.compile(r"# Port (extended )?counters: Lid (\d{1,6}) port (\d{1,4})\b")
_IBDIAGNET_PORT = re.compile(r"Port=(\d{1,4}) Lid=\w{1,10} GUID=0x([0-9a-fA-F]{1,16})\b")
_QUERYERRORS_PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port +(\w{1,4}):")
_QUERYERRORS_VALUE = re.compile(r"\[(\w+) == (\d+)")
_VALUE = re.compile(r"(\w+)(?::\.*|=)(0x[0-9a-fA-F]+|\d+)$")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[^\S\n]*[A-Z]*[^\S\n]*([+-]\d{4}))?")
"""`2025-03-31 23:43:18 UTC +0000`; local time without the last part."""
_HEADING = re.compile(r"^#[^\S\n]*(File created at|Running timestamp)[^\S\n]*:", re.MULTILINE)
"""ibdiagnet's; the first is nearer to the reading, the second is when ibdiagnet began."""
_PAUSE = re.compile(r"-pm_pause_time[ =](\d{1,6})\b")
_MOST = (1 << 64) - 1
_COLUMNS = {
    "PortXmitData": "sent",
    "PortRcvData": "received",
    "PortXmitWait": "waits",
    "PortXmitDataExtended": "sent extended",
    "PortRcvDataExtended": "received extended",
    "PortXmitWaitExt": "waits extended",
}
_NAMES = {
    **_COLUMNS,
    **dict.fromkeys(("XmtData", "XmtBytes"), "sent"),  # perfquery of OFED 1
    **dict.fromkeys(("RcvData", "RcvBytes"), "received"),
    "port_xmit_data": "sent",
    "port_rcv_data": "received",
    "port_xmit_wait": "waits",
    "port_xmit_data_extended": "sent extended",
    "port_rcv_data_extended": "received extended",
    "port_xmit_wait_extended": "waits extended",
}
Place = tuple[int, int, int]
"""GUID, LID, port; the one of the first two that is not known is 0."""


@dataclass
class PortValues:
    """Counters by port, as they are read."""

    values: dict[Place, dict[str, int]] = field(default_factory=dict)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Line and reason of what was passed over."""

    def at(self, place: Place) -> dict[str, int] | None:
        """The counters of a port to fill; None where it is no end of a link: port 0 of a switch,
        and the sum of all ports (255)."""
        _, lid, port = place
        if lid > MAX_LID or not 0 < port < 255 or len(self.values) > MOST_PORTS:
            return None
        return self.values.setdefault(place, {})

    def wide(self, place: Place, name: str) -> int:
        """The counter of 64 bits, else that of 32."""
        values = self.values[place]
        return values.get(f"{name} extended", values.get(name, 0))

    def totals(self, name: str, at: float) -> PortTotals:
        """Of all ports that counted what they sent. Raises `InputError` without one."""
        if len(self.values) > MOST_PORTS:
            raise InputError("has more ports than a subnet", file=name, remedy=REMEDY)
        places = [
            place
            for place, values in self.values.items()
            if "sent" in values or "sent extended" in values
        ]
        notes = tuple(f"{name}: {note}" for note in passed_over(self.bad))
        if not places:
            what = "has no counter of " + ("what ports sent" if self.values else "a port")
            why = f" ({notes[0].removeprefix(f'{name}: ')})" if notes else ""
            raise InputError(f"{what}{why}", file=name, remedy=REMEDY)
        words = np.uint64(WORD)
        most = (1 << 64) // WORD - 1

        def column(key: str) -> U64:
            return np.array([min(self.wide(place, key), most) for place in places], np.uint64)

        return PortTotals(
            source=name,
            guid=np.array([place[0] for place in places], np.uint64),
            lid=np.array([place[1] for place in places], np.int32),
            port=np.array([place[2] for place in places], np.int32),
            sent=column("sent") * words,
            received=column("received") * words,
            waits=column("waits"),
            at=np.full(len(places), at),
            notes=notes,
        )


def read_counter_file(path: str | Path) -> PortTotals:
    """The counters in a file, which may be gzipped, or in ibdiagnet's folder. Raises `InputError`
    where it is missing, unreadable, or not what one of the programs prints."""
    path = Path(path)
    if path.is_dir() and (found := first_readable(path, FOLDER_FILES, read_counter_file)):
        totals, notes = found
        return replace(totals, notes=(*(f"{path}: {note}" for note in notes), *totals.notes))
    return decode_counter_text(read_text(path), str(path), path.stat().st_mtime)


def decode_counter_text(text: str, name: str, at: float) -> PortTotals:
    """The counters in a text that was written at the Unix time `at`; `name` is for messages. Lines
    that cannot be read are passed over; `PortTotals.notes` counts them. Raises `InputError`."""
    values, at = values_of_text(text, at)
    return values.totals(name, at)


def values_of_text(
    text: str,
    at: float,
    names: Mapping[str, str] = _NAMES,
    columns: Mapping[str, str] = _COLUMNS,
) -> tuple[PortValues, float]:
    """The counters that `names` (of perfquery and `ibdiagnet2.pm`) or `columns` (of a db_csv) lead
    to, and the Unix time at which they were read: `at`, unless the text says it."""
    if not SEEN.search(text):
        return values_of_lines(text, names), _heading_date(text) or at
    sections = _sections(text, columns, "PM_INFO")
    read_at = _date_of(sections) or _heading_date(text) or at
    return _values_of_section(sections, "PM_INFO", columns), read_at


def _sections(text: str, columns: Mapping[str, str], *counters: str) -> Sections:
    """The sections with these counters, and those that say when and how they were read."""
    wanted = dict.fromkeys(counters, ("NODEGUID", "PORTNUMBER", *columns))
    return read_sections(
        text, wanted | {"RUN_INFO": ("Date", "Args"), "STAGE_PERF_INFO": ("Name", "Real")}
    )


def read_growth(path: str | Path, seconds: float | None = None) -> PortReadings | None:
    """The window of the section PM_DELTA of one db_csv, or of that in ibdiagnet's folder; None
    where it has none. `seconds`: its length; None takes it from the file. Raises `InputError`."""
    path = Path(path)
    path = path / FOLDER_FILES[0] if path.is_dir() else path
    name, parts = str(path), ("PM_INFO", "PM_DELTA")
    sections = _sections(read_text(path), _COLUMNS, *parts)
    before, growth = (_values_of_section(sections, part, _COLUMNS) for part in parts)
    if not growth.values:
        return None
    after = PortValues(bad=growth.bad)
    for place, values in growth.values.items():
        old = before.values.setdefault(place, {})
        before.values[place] = {key: old.get(key, 0) for key in values}
        after.values[place] = {key: old.get(key, 0) + value for key, value in values.items()}
    length = _sleep(sections) if seconds is None else seconds
    return difference(before.totals(name, 0.0), after.totals(name, length), length)


def read_window(files: Sequence[str | Path], seconds: float | None = None) -> PortReadings | None:
    """The window between two files of perfquery or ibdiagnet2, or of one `ibdiagnet2.db_csv` with
    PM_DELTA; None for another single file. `seconds`: its length; None takes it from the files.
    Raises `InputError` and `WindowLeftOut`."""
    if len(files) == 1:
        return read_growth(files[0], seconds)
    before, after = (read_counter_file(path) for path in files)
    if seconds is not None:
        before = replace(before, at=before.at * 0.0)
        after = replace(after, at=after.at * 0.0 + seconds)
    return difference(before, after, float(after.at.max()))


def values_of_lines(text: str, names: Mapping[str, str]) -> PortValues:
    """What perfquery, ibqueryerrors and `ibdiagnet2.pm` say of the counters in `names`, which leads
    from their names to ours."""
    ports, here, extended = PortValues(), None, ""  # type: PortValues, dict[str, int] | None, str
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if match := _PERFQUERY_PORT.match(line):
            here = ports.at((0, int(match[2]), int(match[3])))
            extended = " extended" if match[1] else ""
        elif match := _IBDIAGNET_PORT.match(line):
            here, extended = ports.at((int(match[2], 16), 0, int(match[1]))), ""
        elif match := _QUERYERRORS_PORT.match(line):
            port = int(match[2]) if match[2].isdecimal() else 0  # of `ALL`, as of port 0: none
            if (here := ports.at((int(match[1], 16), 0, port))) is not None:
                counts = _QUERYERRORS_VALUE.findall(line)
                here.update({names[n]: min(int(c), _MOST) for n, c in counts if n in names})
        elif line.startswith(("# Port ", "Port=")):
            here = None
            ports.bad.append((number, "names no port"))
        elif here is not None and (value := _VALUE.match(line)) and value[1] in names:
            key = names[value[1]]
            try:
                count = number_of(value[2], _MOST)
            except ValueError:
                ports.bad.append((number, f"{value[1]} is no counter of 64 bits"))
                continue
            here[key + (extended if key in ("sent", "received") else "")] = count
    return ports


def _values_of_section(sections: Sections, name: str, columns: Mapping[str, str]) -> PortValues:
    """What PM_INFO or PM_DELTA say in these columns; values that a device did not give are left
    out."""
    ports = PortValues()

    def add(row: Row) -> None:
        guid, port, *texts = row.values
        counts = {
            key: number_of(text, _MOST)
            for key, text in zip(columns.values(), texts, strict=True)
            if known(text)
        }
        here = ports.at((guid_of(guid), 0, number_of(port, 255)))
        if here is not None:
            here.update(counts)

    sections.each(name, add)
    ports.bad = [(line, why) for line, why in sections.bad if name in why]
    return ports


def _date_of(sections: Sections) -> float | None:
    """The Unix time at which ibdiagnet began, by RUN_INFO."""
    times = (_time_of(row.values[0]) for row in sections.rows["RUN_INFO"])
    return next((time for time in times if time is not None), None)


def _heading_date(text: str) -> float | None:
    """The Unix time in ibdiagnet's heading; None where there is none."""
    said = {match[1]: _time_of(text[match.end() :][:80]) for match in _HEADING.finditer(text)}
    return said.get("File created at") or said.get("Running timestamp")


def _time_of(text: str) -> float | None:
    """The first time in a text, Unix seconds; one without an offset is local."""
    if match := _DATE.search(text.partition("\n")[0]):
        date, offset = match.groups()
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(date + (offset or "")).timestamp()
    return None


def _sleep(sections: Sections) -> float:
    """Seconds from the first reading of a port to the second."""
    said = [_PAUSE.search(row.values[1]) for row in sections.rows["RUN_INFO"]]
    pause = next((float(match[1]) for match in said if match), 1.0)
    stage = dict(row.values for row in sections.rows["STAGE_PERF_INFO"])
    with suppress(ValueError):
        whole = float(stage.get("Port Counters", ""))
        if pause < whole < inf:
            return (pause + whole) / 2
    return pause or 1.0
