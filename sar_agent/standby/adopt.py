"""Makes the peer's state this agent's own.

Everything is received and examined before anything is changed. Then the files take their places by
renaming, those first that nothing refers to; `standby.json` is last, so that an adoption that was
interrupted is done again. The routes file is written into the plugin's folder: an OpenSM that
becomes the master begins with it.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sar_agent.agent.hints import Hint
from sar_agent.agent.state import State
from sar_agent.errors import InputError, SarError
from sar_agent.formats.routes_file import decode, read_generation
from sar_agent.install.levels import read_eras
from sar_agent.keys.leases import Lease
from sar_agent.standby.peer_client import PeerClient
from sar_agent.standby.snapshot import GENERATION, LISTS, ROUTES, STATE, Snapshot, StateFolders
from sar_agent.util.owned_files import (
    FOLDER,
    PRIVATE,
    PUBLIC_FOLDER,
    READABLE,
    make_folder,
    sync_folder,
)
from sar_agent.util.text_files import CHECK_DISK, disk_errors, write_bytes

_JSON: dict[str, TypeAdapter[Any]] = {
    STATE: TypeAdapter(State),
    "hints.json": TypeAdapter(list[Hint]),
    "leases.json": TypeAdapter(list[Lease]),
}


class StateRefused(SarError):
    """The peer's state cannot be used; a sentence says why. Nothing was changed."""


def adopt(
    client: PeerClient,
    files: Snapshot,
    own: Snapshot,
    folders: StateFolders,
    name: str,
    *,
    same_term: bool,
) -> None:
    """Make the peer's `files` this agent's, whose are `own`; `name` calls the peer.

    Raises `StateRefused` for a state that cannot be used, `PeerProblem`, or `InputError` where the
    disk does not take it."""
    state = f"the state of {name}"
    names = {file.name for file in files}
    if STATE not in names:
        raise StateRefused(f"{state} is refused: it has no {STATE}")
    staging = folders.state / "received"
    shutil.rmtree(staging, ignore_errors=True)
    with disk_errors("cannot be created", staging):
        make_folder(staging / "generations", FOLDER)
    known = {file.digest: folders.path(file.name) for file in own}
    for file in files - own:
        at = known.get(file.digest)
        data = at.read_bytes() if at else client.contents(file)
        _examine(file.name, data, state)
        mode = READABLE if file.name == ROUTES or GENERATION.fullmatch(file.name) else PRIVATE
        write_bytes(staging / file.name, data, mode)
        known[file.digest] = staging / file.name
    if same_term and (staging / ROUTES).exists():
        _refuse_older(staging / ROUTES, folders.path(ROUTES), state)
    _move_into_place(staging, folders, names)


def _examine(file: str, data: bytes, name: str) -> None:
    """Raises `StateRefused` for contents that the agent could not use after a takeover."""
    try:
        if file in _JSON:
            _JSON[file].validate_json(data)
        elif file == "levels.bin":
            read_eras(data)
        elif file == ROUTES:
            decode(data, file)
        elif match := GENERATION.fullmatch(file):
            found = decode(data, file).generation
            if found != int(match[1]):
                raise StateRefused(f"{name} is refused: {file} holds generation {found}")
    except ValidationError as error:
        raise StateRefused(f"{name} is refused: {file} has another format") from error
    except InputError as error:
        raise StateRefused(f"{name} is refused: {error}") from error


def _refuse_older(received: Path, present: Path, name: str) -> None:
    """Within a term generations only grow."""
    own, new = 0, read_generation(received)
    with suppress(SarError):
        own = read_generation(present)
    if new < own:
        raise StateRefused(
            f"{name} is refused: its routes file holds generation {new}, and this agent has "
            f"generation {own} of the same term"
        )


def _move_into_place(staging: Path, folders: StateFolders, names: set[str]) -> None:
    """Raises `InputError`."""
    try:
        make_folder(folders.state / "generations", FOLDER)
        kept = sorted(p.name for p in (staging / "generations").iterdir())
        for file in [f"generations/{name}" for name in kept] + list(LISTS):
            if (staging / file).exists():
                (staging / file).replace(folders.path(file))
        for file in {*folders.names()} - names - {STATE, ROUTES}:
            folders.path(file).unlink(missing_ok=True)
        if (staging / ROUTES).exists():
            make_folder(folders.run, PUBLIC_FOLDER)
            write_bytes(folders.path(ROUTES), (staging / ROUTES).read_bytes(), READABLE)
        if (staging / STATE).exists():
            (staging / STATE).replace(folders.path(STATE))
        sync_folder(folders.state / "generations")
        sync_folder(folders.state)
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror}), so the other agent's state is not kept",
            file=error.filename or folders.state,
            remedy=CHECK_DISK,
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
