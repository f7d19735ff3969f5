"""Put routes in force through the plugin, and believe only what can be read back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import SarError, Unavailable
from sar_agent.install.bridge import Bridge
from sar_agent.install.plan import Plan
from sar_agent.install.routes_file import (
    NO_ROUTE,
    RoutesFile,
    read_image,
    read_routes_file,
    shared_by,
    write_in_place,
    write_routes_file,
)

Indices = NDArray[np.integer]
Table = NDArray[np.uint8]
Timed = Callable[[str], AbstractContextManager[object]]


class ReadBackDiffers(SarError):
    """OpenSM says that the generation is in force, and its tables say otherwise."""


def put_in_force(bridge: Bridge, plan: Plan, path: Path, timed: Timed = nullcontext) -> RoutesFile:
    """Write the plan to `path`, have OpenSM load it, read back what is in force and compare.

    Returns what was read back. Raises `SarError` with the sentence of who refused. Where the
    plugin refused, the file that was at `path` before is put back, so that an OpenSM that restarts
    finds the last good routes.
    """
    bridge.status()  # nobody there: nothing is written
    before, file = _former(path), plan.routes_file()
    with timed("write"):
        write_routes_file(path, file)
    try:
        with timed("load"):
            bridge.load(file.generation, None)
    except Unavailable:
        raise  # no answer: it may yet be in force, so the file stays
    except SarError:
        if before is not None:
            with suppress(SarError):
                write_in_place(path, before)
        raise
    with timed("read_back"):
        found = read_routes_file(bridge.dump().path)
        if wrong := differences(file, found):
            raise ReadBackDiffers(
                f"generation {file.generation} is said to be in force, but {wrong} entries differ "
                "from the plan"
            )
    return found


def differences(wanted: RoutesFile, found: RoutesFile) -> int:
    """Entries of `found` that are not as `wanted`: (switch, destination, LID offset) that both
    know, where LID offsets beyond the plan's repeat its first; and lanes hop by hop."""
    (want_s, have_s), (want_d, have_d) = shared_by(wanted, found)
    ours, theirs = _picker(want_s, want_d, wanted), _picker(have_s, have_d, found)
    count = 0
    for offset, table in enumerate(found.forwarding):
        used = offset if offset < len(wanted.forwarding) else 0
        have, want = theirs(table), ours(wanted.forwarding[used])
        # A checked plan has no route only to ports whose link is down; one that came up since
        # is routed by the plugin.
        wrong = (have != want) & (want != NO_ROUTE)
        if wanted.service_levels is not None:
            if found.service_levels is None:
                return int(wanted.forwarding.size)
            levels = ours(wanted.service_levels[used])
            # Nobody asks for the level of a way from a switch to itself.
            wrong |= (levels != theirs(found.service_levels[offset])) & (want != 0)
        count += int(wrong.sum())
    if wanted.hop_lanes is not None:
        if found.hop_lanes is None:
            return int(wanted.forwarding.size)
        wide = min(wanted.hop_lanes.shape[1], found.hop_lanes.shape[1])
        lanes = wanted.hop_lanes[want_s, :wide, :wide] != found.hop_lanes[have_s, :wide, :wide]
        count += int(lanes.sum())
    return count


def _picker(rows: Indices, columns: Indices, file: RoutesFile) -> Callable[[Table], Table]:
    """What is at `rows` and `columns` of a table of `file`, not copied where that is all of it."""
    whole = file.forwarding.shape[1:]
    if all(
        len(some) == size and (some == np.arange(size)).all()
        for some, size in zip((rows, columns), whole, strict=True)
    ):
        return lambda table: table
    return lambda table: table[np.ix_(rows, columns)]


def _former(path: Path) -> bytes | None:
    try:
        return read_image(path)
    except SarError:
        return None
