"""Put routes in force through the plugin, and believe only what can be read back.

An install has two steps, so that `kill -9` at any point leaves at `routes.sar` either the old
routes or new ones that all switches have confirmed: OpenSM begins with that file when it starts.
New routes are written to `routes.next`, loaded from there and read back; only then is the file
renamed. `finish_or_restore` finishes or undoes what a process that died, or a load that took longer
than its deadline, left behind.

A load is a compare and swap: the plugin computes the digest of the tables in force while it holds
OpenSM's lock, so no fallback can happen in between.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from sar_agent.errors import InputError, SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_had, file_to_routes
from sar_agent.formats.routes_file import RoutesFile, read_routes_file
from sar_agent.install.changes import differences
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, NotYet, SmStatus
from sar_agent.opensm.plugin_client import AT_REST, PluginClient, PluginRefused, PluginStatus
from sar_agent.util.owned_files import READABLE, sync_folder
from sar_agent.util.plural import plural
from sar_agent.util.stages import stage
from sar_agent.util.text_files import disk_errors, write_bytes

OUR_ENGINE = "sar"
"""Our plugin's name among OpenSM's routing engines, whichever engine of ours made the file."""
SENDING_SECONDS = 5.0
"""Seconds to wait for an OpenSM that is sending tables."""
ASK_AGAIN_SECONDS = 0.05
DROPS = (
    "packets to some hosts are dropped; the plugin repairs the routes again once older packets are "
    "gone; if no repair serves, it asks the agent, then the next engine routes (see the last error)"
)


class ReadBackDiffers(SarError):
    """OpenSM reports that the generation is in force, but its tables differ from the plan."""


def next_path(path: Path) -> Path:
    """Where routes wait until they are confirmed to be in force; `path` is `routes.sar`."""
    return path.with_name("routes.next")


def sm_status(
    status: PluginStatus, kept: int = 0, waiting: int = 0, pending: bool = False
) -> SmStatus:
    """The plugin's status in the agent's terms. `kept` and `waiting` are the generations in
    `routes.sar` and `routes.next`; `pending`: there is a `routes.next`."""
    ours = status.engine_in_force == OUR_ENGINE
    state: Literal["starting", "at work", "built"] = "built"
    if status.state not in AT_REST:
        state = "starting" if status.state == "starting" else "at work"
    numbers = status.generation_in_force, status.generation_loaded, kept, waiting
    return SmStatus(
        engine=status.engine_in_force,
        ours=ours,
        identity=_identity(status) if ours else "",
        generation=status.generation_in_force,
        amendments=status.amendments if ours else 0,
        repairs_refused=status.repairs_refused,
        highest_generation=max(numbers),
        restart_generation=kept,
        install_pending=pending,
        role=status.sm_state,
        process=status.pid,
        state=state,
        unsettled=at_work(status),
        unconfirmed_switches=status.unconfirmed_switches,
        drops=DROPS if status.repair_drops else "",
        last_error=status.last_error,
        unknown_terminals=status.unknown_terminals,
        switches=status.switches,
        hca_ports=status.hca_ports,
        lmc=status.lmc,
        sweeps=status.heavy_sweeps,
        routings=status.routings,
        topology_changes=status.topology_changes,
        tables_version=(status.pid, status.routings, status.lft_blocks_confirmed),
        sl2vl_tables_sent=status.sl2vl_tables_sent,
        head_of_queue_seconds=status.head_of_queue_seconds,
        built_at=status.last_build_unix,
        details=status.model_dump(mode="json"),
    )


def _identity(status: PluginStatus) -> str:
    """A file is written once, and the plugin counts its own repairs of it."""
    repaired = f"+{status.amendments}" if status.amendments else ""
    return f"{status.generation_in_force}{repaired}"


def read_in_force(
    client: PluginClient,
    fabric: Fabric,
    patience: float = SENDING_SECONDS,
    plan: Plan | None = None,
) -> InForce:
    """The tables that switches have, on the indices of `fabric`. Where `plan`, of the same fabric,
    has the same entries, the array is the plan's. Raises `NotYet` where OpenSM is at work for
    longer than `patience` seconds, else `SarError` where the tables cannot be read."""
    until = time.monotonic() + patience
    while True:
        before = client.status()
        if before.state in AT_REST:
            found, after = read_now(client, fabric, plan)
            if after.state == before.state and after.routings == before.routings:
                return found
        elif time.monotonic() >= until:
            raise NotYet(at_work(before))
        else:
            time.sleep(ASK_AGAIN_SECONDS)


def read_now(
    client: PluginClient, fabric: Fabric, plan: Plan | None = None
) -> tuple[InForce, PluginStatus]:
    """As `read_in_force`, whether or not OpenSM is at work, with its status right after."""
    dumped = client.dump()
    file = read_routes_file(dumped.path)
    status = client.status()
    had = file_to_had(fabric, file)
    confirmed = had is None and not dumped.unconfirmed_sl2vl_ports and status.settled
    same = plan is not None and _same_entries(plan.routes_file, file)
    routes = file_to_routes(fabric, file, plan.routes.egress if plan and same else None)
    if not status.generation_in_force:  # nobody has proved where hosts of other engines may be
        routes = replace(routes, senders=None)
    return InForce(routes, had, dumped.digest, file, sm_status(status), confirmed), status


def _same_entries(wanted: RoutesFile, found: RoutesFile) -> bool:
    names = ("switch_guids", "terminal_guids", "forwarding")
    return all(np.array_equal(getattr(wanted, n), getattr(found, n)) for n in names)


def at_work(status: PluginStatus) -> str:
    """Why the tables in force are not certain, in a sentence; empty where they are."""
    if status.state not in AT_REST:
        return f"OpenSM is still at work on the tables ({status.state})"
    if not status.settled:
        return (
            f"{plural(status.unconfirmed_switches, 'switch has', 'switches have')} not confirmed "
            f"{status.unconfirmed_lft_blocks} blocks, "
            f"{plural(status.unconfirmed_sl2vl_ports, 'port')} not "
            "their lanes; OpenSM sends them again"
        )
    return ""


def put_in_force(client: PluginClient, plan: Plan, path: Path, proved_from: str | None) -> InForce:
    """Have OpenSM load the plan in place of the tables whose digest is `proved_from` (None: of any
    tables), read the tables back and compare; `path` is the plan's afterwards.

    Raises `NotYet` where OpenSM is at work, else `SarError` with the reason. Then `path` is
    untouched, so that an OpenSM that restarts finds the last good routes.
    """
    status, file, waiting = client.status(), plan.routes_file, next_path(path)
    if status.state not in AT_REST:
        raise NotYet(at_work(status))  # an earlier load may still read the file
    with stage("write"):
        write_bytes(waiting, plan.image, READABLE)
    try:
        with stage("load"):
            client.load(file.generation, proved_from)
    except PluginRefused as error:
        if not error.pending:
            _remove(waiting)
        if error.code == "busy":
            raise NotYet(str(error)) from error
        raise
    with stage("read_back"):
        found = _read_back(client, plan)
    _rename(waiting, path)
    return found


def _read_back(client: PluginClient, plan: Plan) -> InForce:
    """The tables in force after a load; raises where they are not the plan's, or not confirmed."""
    file, found = plan.routes_file, read_in_force(client, plan.fabric, plan=plan)
    if found.generation != file.generation:
        raise ReadBackDiffers(
            f"generation {file.generation} was in force, and generation {found.generation} of "
            f"engine {found.status.engine} is now"
        )
    if wrong := differences(file, found.file):
        raise ReadBackDiffers(
            f"OpenSM reports generation {file.generation} in force, but "
            f"{plural(wrong, 'entry differs', 'entries differ')} "
            "from the plan"
        )
    if not found.confirmed:
        raise NotYet(f"generation {file.generation} was sent, but {found.status.unsettled}")
    return found


def finish_or_restore(client: PluginClient, path: Path) -> str:
    """Finish or undo what a process that died, or a load past its deadline, left in `routes.next`:
    it becomes `path` where OpenSM has it in force and confirmed, and is removed where other tables
    are in force. Returns what was done in a sentence; empty where there was nothing to do.

    Raises `NotYet` while that is not certain: OpenSM is at work, or switches have not confirmed.
    """
    waiting = next_path(path)
    if not waiting.exists():
        return ""
    try:
        file = read_routes_file(waiting)
    except InputError as error:
        _remove(waiting)
        return f"removed a routes file that cannot be loaded: {error}"
    status = client.status()
    if status.sm_state != "master":
        raise NotYet(f"this OpenSM is not the master but {status.sm_state}")
    if status.state != "built":
        raise NotYet(at_work(status))
    what = f"generation {file.generation}"
    if status.generation_in_force == file.generation:
        dumped = client.dump()
        found, status = read_routes_file(dumped.path), client.status()
        if found.had is not None or dumped.unconfirmed_sl2vl_ports or not status.settled:
            raise NotYet(f"{what} was sent, but {at_work(status) or 'not all of it is confirmed'}")
        if status.generation_in_force == file.generation and not differences(file, found):
            _rename(waiting, path)
            return f"{what} is in force and confirmed, and is what OpenSM starts from now"
    _remove(waiting)
    return f"{what} did not come into force, and its file is removed"


def _rename(waiting: Path, path: Path) -> None:
    """In one step, on the disk when this returns. Raises `InputError`."""
    with disk_errors(
        f"cannot be replaced by {waiting.name}",
        path,
        "fix the folder; until then OpenSM would start from older routes",
    ):
        waiting.replace(path)
        sync_folder(path.parent)


def _remove(waiting: Path) -> None:
    """Raises `InputError`."""
    with disk_errors("cannot be removed", waiting, "fix the folder"):
        waiting.unlink(missing_ok=True)
