"""Makes the peer's state this agent's own.

Everything is received and examined before anything is changed. Then the files take their places by
renaming, those first that nothing refers to; `standby.json` is last, so that an adoption that was
interrupted is done again. The routes file is written into the plugin's folder: an OpenSM that
becomes the master begins with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
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
from sar_agent.standby.peer_client import PeerClient, PeerState
from sar_agent.standby.snapshot import (
    GENERATION,
    LISTS,
    ROUTES,
    STATE,
    Snapshot,
    SnapshotFile,
    StateFolders,
)
from sar_agent.util.owned_files import (
    FOLDER,
    PRIVATE,
    PUBLIC_FOLDER,
    READABLE,
    make_folder,
    sync_folder,
)
from sar_agent.util.text_files import write_bytes

_JSON: dict[str, TypeAdapter[Any]] = {
    STATE: TypeAdapter(State),
    "hints.json": TypeAdapter(list[Hint]),
    "leases.json": TypeAdapter(list[Lease]),
}


class StateRefused(SarError):
    """The peer's state cannot be used; a sentence says why. Nothing was changed."""


def receive(
    client: PeerClient, peer: PeerState, own: Snapshot, folders: StateFolders, *, same_term: bool
) -> Callable[[bool], None]:
    """Fetch what `own` does not have of the peer's files, examine all of it, and return what puts
    it in place; that is called with whether the routes file is to be written, too.

    Raises `StateRefused` for a state that cannot be used, `PeerProblem`, or `InputError` where the
    disk does not take it."""
    assert peer.files is not None
    name = f"the state of {peer.claim.name}"
    files = {file.name: file for file in peer.files}
    if STATE not in files:
        raise StateRefused(f"{name} is refused: it has no {STATE}")
    staging = folders.state / "received"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        make_folder(staging / "generations", FOLDER)
    except OSError as error:
        raise InputError(f"cannot be created ({error.strerror})", file=staging) from error
    have = {file.digest for file in own.files}
    wanted = {file.digest: file for file in files.values() if file.digest not in have}
    for file, data in client.get(list(wanted.values())):
        _stage(staging, [f for f in files.values() if f.digest == file.digest], data, name)
    for file in files.values():
        if file.digest in have and not _is_in_place(own, file):
            _stage(staging, [file], b"".join(own.read(file.digest)), name)
    _refuse_older(staging, folders, name, same_term=same_term)

    def put(with_routes: bool) -> None:
        _put(staging, folders, files, with_routes=with_routes)

    return put


def _is_in_place(own: Snapshot, file: SnapshotFile) -> bool:
    return any(one.name == file.name and one.digest == file.digest for one in own.files)


def _stage(staging: Path, files: list[SnapshotFile], data: bytes, name: str) -> None:
    for file in files:
        _examine(file.name, data, name)
        mode = READABLE if file.name == ROUTES or GENERATION.fullmatch(file.name) else PRIVATE
        write_bytes(staging / file.name, data, mode)


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


def _refuse_older(staging: Path, folders: StateFolders, name: str, *, same_term: bool) -> None:
    """Within a term generations only grow."""
    own = new = 0
    with suppress(SarError):
        own = read_generation(folders.path(ROUTES))
    if not (staging / ROUTES).exists():
        return
    new = read_generation(staging / ROUTES)
    if same_term and new < own:
        raise StateRefused(
            f"{name} is refused: its routes file holds generation {new}, and this agent has "
            f"generation {own} of the same term"
        )


def _put(
    staging: Path, folders: StateFolders, files: dict[str, SnapshotFile], *, with_routes: bool
) -> None:
    """Raises `InputError`."""
    try:
        make_folder(folders.state / "generations", FOLDER)
        kept = sorted(p.name for p in (staging / "generations").iterdir())
        for file in [f"generations/{name}" for name in kept] + list(LISTS):
            if (staging / file).exists():
                (staging / file).replace(folders.path(file))
        for file in folders.names():
            if file not in files and file not in (STATE, ROUTES):
                folders.path(file).unlink(missing_ok=True)
        if with_routes and (staging / ROUTES).exists():
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
            remedy="check the folder and its free space",
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
