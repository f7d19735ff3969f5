"""What ports counted in a window, before it is known which links they belong to.

`difference` makes it of two `PortTotals`: the counters at its begin and at its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import SarError
from sar_agent.fabric.model import F64, I32, U64, Bool

WORD = 4
"""Bytes of a word, in which PortXmitData and PortRcvData count (IBA, 16.1.3.5)."""
STUCK = (1 << 32) - 1
"""Where a counter of 32 bits stays until it is cleared."""
MOST_PORTS = 1 << 20
"""More are refused: a subnet has 49,151 LIDs."""


class WindowLeftOut(SarError):
    """The counters of a window cannot be used; the sentence says why."""


@dataclass(frozen=True, eq=False)
class PortReadings:
    """P ports. A port is named by the GUID of its node (or, of an HCA, its own), or by a LID."""

    source: str
    """For messages."""
    guid: U64
    """uint64[P], 0 where only the LID is known."""
    lid: I32
    """int32[P], 0 where it is not known."""
    port: I32
    """int32[P], the number of the port on its node."""
    sent: U64
    """uint64[P], bytes."""
    received: U64
    """uint64[P], bytes; all 0 if the source does not say."""
    waits: U64
    """uint64[P], ticks (PortXmitWait)."""
    seconds: F64
    """float64[P], length of the window of each port."""
    age: F64
    """float64[P], seconds from the end of its window to when this was read."""
    counted: Bool
    """bool[P], whether `sent` is a difference over `seconds`."""
    waits_counted: Bool
    """bool[P]"""
    stuck: Bool
    """bool[P], whether a counter stood at its maximum."""
    went_back: Bool
    """bool[P], whether a counter was lower at the end of the window."""
    notes: tuple[str, ...] = ()
    """What could not be read, one sentence each."""


@dataclass(frozen=True, eq=False)
class PortTotals:
    """Counters of P ports as they were read at the Unix times `at`. Arrays as in `PortReadings`."""

    source: str
    guid: U64
    lid: I32
    port: I32
    sent: U64
    received: U64
    waits: U64
    at: F64
    """float64[P], Unix seconds."""
    notes: tuple[str, ...] = ()
    """What could not be read, one sentence each."""


def place_key(guid: U64, port: I32) -> U64:
    """uint64[P]: equal for equal ports. Two ports share a key only if the difference of their GUIDs
    is one of 255 numbers of 63 bits."""
    return guid * np.uint64(0x9E3779B97F4A7C15) + port.astype(np.uint64)


def index_of(values: NDArray[np.generic], wanted: NDArray[np.generic]) -> NDArray[np.int64]:
    """int64[P]: the place of each wanted value, -1 where it is not among the values."""
    if not len(values):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(values, kind="stable")
    place = np.minimum(np.searchsorted(values[order], wanted), len(values) - 1)
    return np.where(values[order][place] == wanted, order[place], -1).astype(np.int64)


def difference(before: PortTotals, after: PortTotals, now: float) -> PortReadings:
    """The window between two readings; ports that are in one of them only are not counted. Raises
    `WindowLeftOut` if the second reading is not later than the first."""
    if not len(before.at) or not len(after.at):
        empty = before if not len(before.at) else after
        raise WindowLeftOut(f"{empty.source} has no counter of a port")
    if np.median(after.at) <= np.median(before.at):
        raise WindowLeftOut(
            f"{after.source} is not later than {before.source}; the clocks differ, or it is the "
            "same reading twice"
        )
    old_key = place_key(before.guid ^ before.lid.astype(np.uint64), before.port)
    new_key = place_key(after.guid ^ after.lid.astype(np.uint64), after.port)
    old = index_of(old_key, new_key)
    both = old >= 0
    seconds = after.at - before.at[old]
    pairs = ((after.sent, before.sent[old]), (after.received, before.received[old]))
    back = both & np.logical_or.reduce([new < then for new, then in pairs])
    words = np.uint64(WORD * STUCK)
    stuck = both & np.logical_or.reduce([(new == words) for new, _ in pairs])
    counted = both & ~back & (seconds > 0)
    waits_back = after.waits < before.waits[old]
    return PortReadings(
        source=after.source,
        guid=after.guid,
        lid=after.lid,
        port=after.port,
        sent=np.where(counted, after.sent - before.sent[old], 0).astype(np.uint64),
        received=np.where(counted, after.received - before.received[old], 0).astype(np.uint64),
        waits=np.where(counted & ~waits_back, after.waits - before.waits[old], 0).astype(np.uint64),
        seconds=np.where(counted, seconds, 0.0),
        age=now - after.at,
        counted=counted,
        waits_counted=counted & ~waits_back,
        stuck=stuck,
        went_back=back,
        notes=tuple(dict.fromkeys(before.notes + after.notes)),
    )
