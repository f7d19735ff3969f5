"""Put routes in force through the plugin, and believe only what can be read back.

In two steps, so that `kill -9` at any point leaves at `routes.sar` the old routes or new ones that
all switches have confirmed: OpenSM takes that file by itself when it starts. New routes are written
to `routes.next`, loaded from there, read back, and only then renamed. `finish_or_restore` does what
a process that died, or a load that took longer than its deadline, left undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError, SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_had, file_to_routes
from sar_agent.formats.routes_file import (
    NO_ROUTE,
    RoutesFile,
    read_routes_file,
    shared_by,
    write_routes_file,
)
from sar_agent.install.plan import Plan
from sar_agent.opensm.plugin_client import PluginClient, PluginRefused, PluginStatus
from sar_agent.routing.routes import Routes
from sar_agent.util.owned_files import sync_folder

Indices = NDArray[np.integer]
Table = NDArray[np.uint8]
Timed = Callable[[str], AbstractContextManager[object]]
OUR_ENGINE = "sar"
"""Our plugin's name among OpenSM's routing engines, whichever engine of ours made the file."""
PATIENCE = 5.0
"""Seconds to wait for an OpenSM that is sending tables."""
ASK_AGAIN = 0.05
LATER_IN_FORCE = frozenset({"deadline", "unconfirmed"})
"""Refusals after which what was loaded may be in force all the same."""


class ReadBackDiffers(SarError):
    """OpenSM says that the generation is in force, and its tables say otherwise."""


class NotYet(Unavailable):
    """OpenSM is at work, or switches have not confirmed what they were sent: what is in force is
    not known, or not enough of it. Nothing has failed; a later try may find it done."""


@dataclass(frozen=True, eq=False)
class InForce:
    """Tables that were read back, on the indices of a fabric."""

    routes: Routes
    """Where a switch has not confirmed: what it was sent last."""
    had: Table | None
    """uint8[O, D, S]: what switches may have instead, 254 where that is not known; None where all
    is confirmed."""
    digest: str
    """Names these tables to `PluginClient.load`."""
    file: RoutesFile
    """The same as the plugin told it."""
    status: PluginStatus
    """As it was right after."""
    confirmed: bool
    """Nothing is under way, and switches have confirmed all tables."""

    @property
    def generation(self) -> int:
        """0 where another engine than the plugin's made them."""
        return self.status.generation_in_force


def next_path(path: Path) -> Path:
    """Where routes wait until they are confirmed to be in force; `path` is `routes.sar`."""
    return path.with_name("routes.next")


def read_in_force(bridge: PluginClient, fabric: Fabric, patience: float | None = None) -> InForce:
    """What the switches have, on the indices of `fabric`. Raises `NotYet` where OpenSM is at work
    for longer than `patience` (None: `PATIENCE`) seconds, else `SarError` where it cannot be told.
    """
    until = time.monotonic() + (PATIENCE if patience is None else patience)
    while True:
        before = bridge.status()
        if before.state == "built":
            dumped = bridge.dump()
            file = read_routes_file(dumped.path)
            status = bridge.status()
            if status.state == "built" and status.routings == before.routings:
                break
        elif time.monotonic() >= until:
            raise NotYet(at_work(before))
        else:
            time.sleep(ASK_AGAIN)
    had = file_to_had(fabric, file)
    confirmed = had is None and not dumped.unconfirmed_sl2vl_ports and status.settled
    routes = file_to_routes(fabric, file)
    if not status.generation_in_force:  # nobody has proved where other engines' hosts may be
        routes = replace(routes, senders=None)
    return InForce(routes, had, dumped.digest, file, status, confirmed)


def at_work(status: PluginStatus) -> str:
    """Why what is in force is not known; empty where it is."""
    if status.state != "built":
        return f"OpenSM is still at work on the tables ({status.state})"
    if not status.settled:
        return (
            f"{status.unconfirmed_switches} switches have not confirmed "
            f"{status.unconfirmed_lft_blocks} blocks, {status.unconfirmed_sl2vl_ports} ports not "
            "their lanes; OpenSM sends them again"
        )
    return ""


def put_in_force(
    bridge: PluginClient,
    plan: Plan,
    path: Path,
    proved_from: str | None,
    timed: Timed = nullcontext,
) -> InForce:
    """Have OpenSM load the plan in place of the tables whose digest is `proved_from` (None: of
    whatever is in force), read back what is in force and compare; `path` is the plan's afterwards.

    Raises `NotYet` where OpenSM is at work, else `SarError` with the sentence of who refused. Then
    `path` is untouched, so that an OpenSM that restarts finds the last good routes.
    """
    status, file, waiting = bridge.status(), plan.routes_file(), next_path(path)
    if status.state != "built":
        raise NotYet(at_work(status))  # a load of before may still read the file
    with timed("write"):
        write_routes_file(waiting, file)
    try:
        with timed("load"):
            bridge.load(file.generation, proved_from)
    except PluginRefused as error:
        if error.code not in LATER_IN_FORCE:
            _remove(waiting)
        if error.code == "busy":
            raise NotYet(str(error)) from error
        raise
    with timed("read_back"):
        found = read_in_force(bridge, plan.fabric)
        if found.generation != file.generation:
            raise ReadBackDiffers(
                f"generation {file.generation} was in force, and generation {found.generation} of "
                f"engine {found.status.engine_in_force} is now"
            )
        if wrong := differences(file, found.file):
            raise ReadBackDiffers(
                f"generation {file.generation} is said to be in force, but {wrong} entries differ "
                "from the plan"
            )
        if not found.confirmed:
            raise NotYet(f"generation {file.generation} was sent, but {at_work(found.status)}")
    _rename(waiting, path)
    return found


def finish_or_restore(bridge: PluginClient, path: Path) -> str:
    """After a restart, or a load that passed its deadline: what it left in `routes.next` becomes
    `path` where that is in force and confirmed, and is removed where something else is. Returns
    what was done in a sentence, empty where nothing was to be done.

    Raises `NotYet` while that cannot be told: OpenSM is at work, or switches have not confirmed.
    """
    waiting = next_path(path)
    if not waiting.exists():
        return ""
    try:
        file = read_routes_file(waiting)
    except InputError as error:
        _remove(waiting)
        return f"removed routes that nobody loads: {error}"
    status = bridge.status()
    if status.sm_state != "master":
        raise NotYet(f"this OpenSM is not the master but {status.sm_state}")
    if status.state != "built":
        raise NotYet(at_work(status))
    what = f"generation {file.generation}"
    if status.generation_in_force == file.generation:
        dumped = bridge.dump()
        found, status = read_routes_file(dumped.path), bridge.status()
        if found.had is not None or dumped.unconfirmed_sl2vl_ports or not status.settled:
            raise NotYet(f"{what} was sent, but {at_work(status) or 'not all of it is confirmed'}")
        if status.generation_in_force == file.generation and not differences(file, found):
            _rename(waiting, path)
            return f"{what} is in force and confirmed, and is what OpenSM starts from now"
    _remove(waiting)
    return f"{what} did not come into force, and its file is removed"


def _rename(waiting: Path, path: Path) -> None:
    """In one step, on the disk when this returns. Raises `InputError`."""
    try:
        waiting.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"cannot be replaced by {waiting.name}: {error.strerror}",
            file=path,
            remedy="fix the folder; until then OpenSM would start from older routes",
        ) from error


def _remove(waiting: Path) -> None:
    """Raises `InputError`."""
    try:
        waiting.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be removed: {error.strerror}", file=waiting, remedy="fix the folder"
        ) from error


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
