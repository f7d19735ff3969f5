"""Counters from files: what perfquery printed, and ibdiagnet2's dump of counters (`ibdiagnet2.pm`).

A file holds all ports at one time, which is the time when it was last written. The two newest files
of a glob pattern are a window. perfquery names ports by LID:

    # Port extended counters: Lid 6 port 1 (CapMask: 0x1200)
    PortXmitData:....................1234

ibdiagnet2 names them by GUID:

    Port=1 Lid=0x0006 GUID=0x248a070300f88ff0 Device=52000 Port Name=sw1/P1
    port_xmit_data_extended=1234
"""

from __future__ import annotations

import glob
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sar_agent.counters.readings import MOST_PORTS, WORD, PortReadings, PortTotals, difference
from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric.cabling import MAX_LID

MOST_BYTES = 1 << 28
REMEDY = "give the output of perfquery -x, or ibdiagnet2's file ibdiagnet2.pm"
_PERFQUERY = re.compile(r"# Port (extended )?counters: Lid (\d{1,6}) port (\d{1,4})\b")
_IBDIAGNET = re.compile(r"Port=(\d{1,4}) Lid=\w{1,10} GUID=0x([0-9a-fA-F]{1,16})\b")
_VALUE = re.compile(r"(\w+)(?::\.*|=)(0x[0-9a-fA-F]+|\d+)$")
_NAMES = {
    "PortXmitData": "sent",
    "PortRcvData": "received",
    "PortXmitWait": "waits",
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
class _Ports:
    """Counters by port, as they are read."""

    values: dict[Place, dict[str, int]] = field(default_factory=dict)

    def wide(self, place: Place, name: str) -> int:
        """The counter of 64 bits, else that of 32."""
        values = self.values[place]
        return values.get(f"{name} extended", values.get(name, 0))


def read_counter_file(path: str | Path) -> PortTotals:
    """The counters in a file. Raises `InputError` where it is missing, unreadable, or not what
    one of the programs prints."""
    path = Path(path)
    try:
        stat = path.stat()
        if stat.st_size > MOST_BYTES:
            raise InputError("is too large for counters", file=path, remedy=REMEDY)
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({what})", file=path, remedy=REMEDY) from error
    return decode_counter_text(text, str(path), stat.st_mtime)


def decode_counter_text(text: str, name: str, at: float) -> PortTotals:
    """The counters in a text that was written at the Unix time `at`; `name` is for messages. Raises
    `InputError`."""
    ports, here, extended = _Ports(), None, ""  # type: _Ports, Place | None, str
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if match := _PERFQUERY.match(line):
            place = (0, int(match[2]), int(match[3]))
            extended = " extended" if match[1] else ""
        elif match := _IBDIAGNET.match(line):
            place, extended = (int(match[2], 16), 0, int(match[1])), ""
        elif line.startswith(("# Port ", "Port=")):
            raise InputError("names no port", file=name, line=number, remedy=REMEDY)
        else:
            value = _VALUE.match(line)
            key = _NAMES.get(value[1]) if value else None
            if value and key and here is not None:
                short = len(value[2]) <= 20
                count = int(value[2], 16 if value[2].startswith("0x") else 10) if short else -1
                if not 0 <= count < 1 << 64:
                    raise InputError(
                        f"{value[1]} is no counter of 64 bits",
                        file=name,
                        line=number,
                        remedy=REMEDY,
                    )
                wide = extended if key in ("sent", "received") else ""
                ports.values[here][key + wide] = count
            continue
        _, lid, port = place
        if lid > MAX_LID or not 0 < port < 255:
            here = None  # port 0 of a switch, and the sum of all ports (255), are no links
            continue
        here = place
        ports.values.setdefault(place, {})
        if len(ports.values) > MOST_PORTS:
            raise InputError("has more ports than a subnet", file=name, line=number, remedy=REMEDY)
    places = [
        place
        for place, values in ports.values.items()
        if "sent" in values or "sent extended" in values
    ]
    if not places:
        raise InputError("has no counter of a port", file=name, remedy=REMEDY)
    words = np.uint64(WORD)
    most = (1 << 64) // WORD - 1

    def column(key: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return np.array([min(ports.wide(place, key), most) for place in places], np.uint64)

    return PortTotals(
        source=name,
        guid=np.array([place[0] for place in places], np.uint64),
        lid=np.array([place[1] for place in places], np.int32),
        port=np.array([place[2] for place in places], np.int32),
        sent=column("sent") * words,
        received=column("received") * words,
        waits=column("waits"),
        at=np.full(len(places), at),
    )


class FileCounters:
    """The source `files`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def read(self) -> PortReadings:
        """The window between the two newest files. Raises `Unavailable`, `InputError` and
        `WindowLeftOut`."""
        names = [Path(name) for name in glob.glob(self.pattern)]  # noqa: PTH207
        found = sorted((path.stat().st_mtime, path) for path in names if path.is_file())
        if len(found) < 2:
            raise Unavailable(
                f"counters.files = {self.pattern} has {len(found)} files, and a window needs two; "
                "let cron write one every few minutes"
            )
        before, after = (read_counter_file(path) for _, path in found[-2:])
        return difference(before, after, time.time())
