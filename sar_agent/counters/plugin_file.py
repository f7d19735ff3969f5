"""Reader of the counters that OpenSM's plugin writes: `opensm_bridge/COUNTERS.md`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from sar_agent.counters.readings import MOST_PORTS, WORD, PortReadings
from sar_agent.fabric.opensm_file import HEADER, read_plugin_file, require_sound, sealed_counts

_PORT_BYTES = 66
_DATA, _WAITS, _STUCK = 1, 2, 4


def read_counters_file(path: str | Path) -> PortReadings:
    """The readings of a file. Raises `InputError` where it is missing, unreadable or damaged."""
    most = HEADER.size + _PORT_BYTES * MOST_PORTS
    return decode_counters(read_plugin_file(Path(path), most, "counters"), str(path))


def decode_counters(image: bytes, name: str = "OpenSM's counters") -> PortReadings:
    """The readings of a file's bytes; `name` is for messages. Raises `InputError`."""
    at = HEADER.size
    kind = "a file of counters of OpenSM's plugin"
    ports, *_ = sealed_counts(image, b"SARCOUNT", kind, lambda c: at + _PORT_BYTES * c[0], name)
    wide = np.frombuffer(image, "<u8", 6 * ports, at).reshape(6, ports)
    narrow = np.frombuffer(image, "<u4", 4 * ports, at + 48 * ports).reshape(4, ports)
    small = np.frombuffer(image, np.uint8, 2 * ports, at + 64 * ports).reshape(2, ports)
    guid, sent, received, _, _, waits = wide.astype(np.uint64)
    age, window, wait_window, sweeps = narrow
    (port, flags), require = small, partial(require_sound, name)
    ascending = (guid[1:] > guid[:-1]) | ((guid[1:] == guid[:-1]) & (port[1:] > port[:-1]))
    require(ascending.all(), "ports are not ascending")
    require((flags < 8).all(), "an unknown flag")
    counted, waited = (flags & _DATA) > 0, (flags & _WAITS) > 0
    require((window[counted] > 0).all() and (wait_window[waited] > 0).all(), "a window of 0 s")
    seconds = window / 1000.0
    # Waits are read by a request of their own; they are given for the same window as the bytes.
    ratio = np.divide(window, wait_window, out=np.ones(ports), where=waited & counted)
    most = np.uint64((1 << 64) // WORD - 1)
    return PortReadings(
        source="OpenSM's PerfMgr",
        identity=f"sweep {int(np.median(sweeps[counted])) if counted.any() else 0}",
        guid=guid,
        lid=np.zeros(ports, np.int32),
        port=port.astype(np.int32),
        sent=np.minimum(sent, most) * np.uint64(WORD),
        received=np.minimum(received, most) * np.uint64(WORD),
        waits=np.minimum(waits * ratio, float(1 << 62)).astype(np.uint64),
        seconds=seconds,
        age=age / 1000.0,
        counted=counted,
        waits_counted=waited & counted,
        stuck=(flags & _STUCK) > 0,
        went_back=np.zeros(ports, np.bool_),
    )
