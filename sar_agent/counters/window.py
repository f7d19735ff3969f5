"""A window of counters on the channels and terminals of a fabric, with what is wrong left out.

A port whose counter cannot be right is not known, and named. If that is so for one link in twenty,
or if a third of the links are missing, the whole window is left out: what is left would not be a
fair sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_agent.counters.readings import PortReadings, WindowLeftOut, index_of, place_key
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U64, Bool
from sar_agent.util.plural import plural

MISSING_SHARE = 1 / 3
"""Share of live links without a counter from which a window is left out."""
WRONG_SHARE = 1 / 20
"""The same for links whose counter is wrong in one way."""
OLD_AFTER_LENGTHS = 3.0
"""A window that ended more than this many of its lengths ago (and a minute) is left out."""
EXCESS_SHARE = 0.05
"""A port may count this much more than it can carry: windows are not exact."""
UNLIKE_RATIO = 0.5
"""The ends of a cable count unlike each other if one has less than this share of the other."""
IDLE_SHARE = 0.02
"""Share of a link's speed below which its two ends are not compared."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CounterWindow:
    """C channels and T terminals, as in the `Fabric`."""

    source: str
    ended: float
    """Seconds from the end of the window (the median) to when it was read."""
    seconds: float
    """Length (the median)."""
    sent: U64
    """uint64[C], bytes that the channel carried; 0 where not known."""
    known: Bool
    """bool[C]; False for every channel that is down."""
    share: F64
    """float64[C], bytes as a share of what the channel could carry; 0 where not known."""
    waits: F64
    """float64[C], PortXmitWait per second; NaN where not known."""
    terminal_share: F64
    """float64[T], what each HCA port sent, as a share of its speed; NaN where not known."""
    notes: tuple[str, ...]
    """What was left out, one sentence each."""


def align(fabric: Fabric, readings: PortReadings) -> CounterWindow:
    """The window on the fabric's indices. Raises `WindowLeftOut`, with one sentence."""
    if not readings.counted.any():
        if readings.went_back.any():
            why = "the counters decreased: they were cleared, or the dumps are in the wrong order"
        else:
            why = "no port was read twice yet, so there is no window; wait for the next reading"
        raise WindowLeftOut(f"{readings.source}: {why}")
    seconds, age = _window(readings)
    row = _channel_rows(fabric, readings)
    live = np.flatnonzero(fabric.channel_up)
    if not len(live):
        raise WindowLeftOut("the fabric has no live link between switches")
    mine = np.where(row >= 0, row, 0)
    fits = _fits(readings, seconds, age)
    known = fabric.channel_up & (row >= 0) & readings.counted[mine] & fits[mine]
    rate = fabric.channel_rate.astype(np.float64) * 1e9 / 8
    room = rate * readings.seconds[mine]
    notes = list(readings.notes)

    def leave_out(wrong: Bool, what: str) -> None:
        """Marks channels as not known; raises if they are too many."""
        places = np.flatnonzero(wrong)
        if not len(places):
            return
        first = fabric.channel_name(int(places[0]))
        sentence = f"{what} on {len(places)} of {plural(len(live), 'link')}, such as {first}"
        if len(places) > max(1.0, WRONG_SHARE * len(live)):
            raise WindowLeftOut(f"{readings.source}: {sentence}; the window is left out")
        notes.append(f"{sentence}; left out")
        known[places] = False

    up = fabric.channel_up & (row >= 0)
    leave_out(up & readings.went_back[mine], "the counter went back")
    leave_out(up & readings.stuck[mine], "a counter of 32 bits stood at its maximum")
    leave_out(up & readings.counted[mine] & ~fits[mine], "the counter is of another window")
    with np.errstate(invalid="ignore"):
        above = readings.sent[mine] > (1 + EXCESS_SHARE) * room + rate
    leave_out(known & above, "the counter jumped by more than the link can carry")
    leave_out(_unlike(fabric, readings, row, known, room), "the two ends of a cable count unlike")
    absent = len(live) - int(known.sum())
    if absent > MISSING_SHARE * len(live):
        raise WindowLeftOut(
            f"{readings.source}: the counters of {absent} of "
            f"{plural(len(live), 'link')} {'is' if absent == 1 else 'are'} missing"
            + (f" ({notes[0]})" if notes else _first_missing(fabric, live, known))
            + "; the window is left out"
        )
    share = np.divide(readings.sent[mine], room, out=np.zeros(len(row)), where=known)
    waits = np.full(len(row), np.nan)
    counted = known & readings.waits_counted[mine]
    np.divide(readings.waits[mine], readings.seconds[mine], out=waits, where=counted)
    return CounterWindow(
        source=readings.source,
        ended=age,
        seconds=seconds,
        sent=np.where(known, readings.sent[mine], 0).astype(np.uint64),
        known=known,
        share=share,
        waits=waits,
        terminal_share=_terminal_share(fabric, readings, fits),
        notes=tuple(notes),
    )


def _window(readings: PortReadings) -> tuple[float, float]:
    """Length and age of the window. Raises `WindowLeftOut` where the times cannot be."""
    seconds = float(np.median(readings.seconds[readings.counted]))
    age = float(np.median(readings.age[readings.counted]))
    if age < -5.0:
        raise WindowLeftOut(
            f"{readings.source}: the window ends {-age:.0f} s in the future; the clocks of the two "
            "machines differ, the window is left out"
        )
    if age > max(60.0, OLD_AFTER_LENGTHS * seconds):
        raise WindowLeftOut(
            f"{readings.source}: the last counters are {age:.0f} s old: nothing reads them, or "
            "the clocks differ"
        )
    return seconds, age


def _fits(readings: PortReadings, seconds: float, age: float) -> Bool:
    """bool[P]: whether a port's window is the one that most ports have."""
    late = np.abs(readings.age - age) > 0.5 * seconds
    other = np.abs(readings.seconds - seconds) > 0.5 * seconds
    return ~(late | other)


def _switches(fabric: Fabric, readings: PortReadings) -> Rows:
    """int64[P]: the switch of each reading, -1 for other nodes."""
    by_guid = index_of(fabric.switch_guid, readings.guid)
    by_lid = index_of(fabric.switch_lid, readings.lid)
    unnamed = (readings.guid == 0) & (readings.lid > 0)
    return np.where(unnamed, by_lid, by_guid)


def _channel_rows(fabric: Fabric, readings: PortReadings) -> Rows:
    """int64[C]: the reading of the port by which each channel leaves, -1 without."""
    switch = _switches(fabric, readings)
    valid = (switch >= 0) & (readings.port > 0) & (readings.port < 256)
    channel = np.full(len(switch), -1, np.int64)
    channel[valid] = fabric.channel_by_port[switch[valid], readings.port[valid]]
    row = np.full(fabric.channels, -1, np.int64)
    known = np.flatnonzero(channel >= 0)
    row[channel[known]] = known
    return row


def _unlike(fabric: Fabric, readings: PortReadings, row: Rows, known: Bool, room: F64) -> Bool:
    """bool[C]: what the far end received is not what the channel sent, so one of the two ports is
    not where the fabric says, or was not read in this window."""
    far = row[fabric.channel_reverse]
    both = known & known[fabric.channel_reverse]
    if not readings.received.any():
        return np.zeros(len(row), np.bool_)
    sent = readings.sent[np.maximum(row, 0)].astype(np.float64)
    received = readings.received[np.maximum(far, 0)].astype(np.float64)
    low, high = np.minimum(sent, received), np.maximum(sent, received)
    return both & (high > IDLE_SHARE * room) & (low < UNLIKE_RATIO * high)


def _terminal_share(fabric: Fabric, readings: PortReadings, fits: Bool) -> F64:
    """float64[T]: from the HCA's own counter, else from what its leaf switch received."""
    key = place_key(readings.guid, readings.port)
    node = place_key(fabric.terminal_node_guid, fabric.terminal_port_number)
    row = index_of(key, node)
    row = np.where(row < 0, index_of(readings.guid, fabric.terminal_guid), row)
    unnamed = np.where(readings.guid == 0, readings.lid, 0)
    has_lid = (row < 0) & (fabric.terminal_lid > 0)
    row = np.where(has_lid, index_of(unnamed, fabric.terminal_lid), row)
    switch = _switches(fabric, readings)
    leaf_key = switch * 256 + np.where(readings.port < 256, readings.port, 0)
    wanted = fabric.terminal_switch.astype(np.int64) * 256 + fabric.terminal_switch_port
    leaf = index_of(np.where(switch >= 0, leaf_key, -1), wanted)
    share = np.full(fabric.terminals, np.nan)
    rate = fabric.terminal_rate.astype(np.float64) * 1e9 / 8
    for rows, sent in ((leaf, readings.received), (row, readings.sent)):
        safe = np.maximum(rows, 0)
        good = (rows >= 0) & fabric.terminal_up & readings.counted[safe] & fits[safe]
        room = rate * readings.seconds[safe]
        good &= ~readings.stuck[safe] & (sent[safe] <= (1 + EXCESS_SHARE) * room + rate)
        if sent is readings.received and not sent.any():
            continue
        np.divide(sent[safe], room, out=share, where=good)
    return share


def _first_missing(fabric: Fabric, live: NDArray[np.int64], known: Bool) -> str:
    return f", such as {fabric.channel_name(int(live[~known[live]][0]))}"
