"""Makes the state in an archive this agent's own.

Everything is examined before anything is changed. Then the files take their places by renaming,
those first that nothing refers to; the archive itself is last, so that a taking that was
interrupted is done again. The routes file is written into the plugin's folder: an OpenSM that
becomes the master begins with it.

While the agent makes passes, or a person's rollback is under way, nothing is taken: what they have
in memory and what is on disk would differ.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sar_agent import __version__
from sar_agent.agent.hints import Hint
from sar_agent.agent.history import MOST_ROWS, History, Row
from sar_agent.agent.quiet import PASSES, role_of
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import InputError, SarError
from sar_agent.formats.routes_file import decode
from sar_agent.install.levels import read_eras
from sar_agent.services.archive.files import (
    CONNECTIONS,
    DECISIONS,
    GENERATION,
    HINTS,
    LEASES,
    LEVELS,
    ROUTES,
    STATE,
    StateFolders,
)
from sar_agent.services.archive.format import ArchiveRefused, Edition, Header, unpack
from sar_agent.services.archive.own import archive_path, kept_header, own_edition
from sar_agent.services.keys.leases import Lease
from sar_agent.util.lock_file import Lock
from sar_agent.util.owned_files import (
    FOLDER,
    PRIVATE,
    PUBLIC_FOLDER,
    READABLE,
    make_folder,
    sync_folder,
)
from sar_agent.util.text_files import CHECK_DISK, disk_errors, write_bytes

LOCK_SECONDS = 10.0
"""Seconds to wait for an agent that gives way, or for a person's rollback that is under way."""
MOST_TOLD = 200
"""Decisions that are told back: those of a fabric that was in two parts."""
_ROWS = TypeAdapter(list[Row])
_JSON: dict[str, TypeAdapter[Any]] = {
    STATE: TypeAdapter(State),
    HINTS: TypeAdapter(list[Hint]),
    LEASES: TypeAdapter(list[Lease]),
    DECISIONS: _ROWS,
}


def own_order(config: Config) -> Edition:
    """Of this agent's state; generation 0 where it has none. Raises `SarError` where its
    `state.json` cannot be read."""
    state = StateStore(config.agent.state_dir).load()
    return own_edition(config.agent.state_dir, state.generation if state else 0)


def refusal(config: Config, header: Header, name: str) -> str:
    """Why the archive is not taken, in a sentence; empty where it may be. `name` calls it."""
    if header.release != __version__:
        return (
            f"{name} is of release {header.release}, this agent of {__version__}: nothing is "
            "copied; install one release on both machines"
        )
    if role_of(config) == "master":
        return f"{name} is not taken: the OpenSM here is the master"
    try:
        own = own_order(config)
    except SarError as error:
        return str(error)
    if own.generation and header.order < own:
        return (
            f"{name} is older (generation {header.generation}, edition {header.edition}) than what "
            f"is here (generation {own.generation}, edition {own.number})"
        )
    kept = kept_header(config.agent.state_dir)
    if own.generation and header.order == own and kept and kept.contents != header.contents:
        return (
            f"{name} has other files than generation {own.generation}, edition {own.number}, which "
            "is here"
        )
    return ""


def is_here(config: Config, header: Header) -> bool:
    """Whether this agent's state and its decisions are those of the archive."""
    folder = config.agent.state_dir
    kept, order = kept_header(folder), own_order(config)
    return bool(
        kept
        and order == header.order
        and kept.contents == header.contents
        and kept.decided >= header.decided
        and (config.agent.routes_path.exists() or not order.generation)
    )


def take(config: Config, header: Header, body: bytes, name: str) -> list[Row]:
    """Take the archive, which `name` calls; returns the decisions of its time, `MOST_TOLD` at most,
    that it does not have and this agent's history does. Raises `ArchiveRefused`, `Unavailable`
    where the agent or a person is at work, or `InputError` where the disk does not take it."""
    files = unpack(header, body, name)
    if STATE not in files:
        raise ArchiveRefused(f"{name} has no {STATE}")
    for file, data in files.items():
        _examine(file, data, header, name)
    folder = config.agent.state_dir
    with (
        Lock(folder, PASSES, LOCK_SECONDS),
        Lock(folder, "pass.lock", LOCK_SECONDS),
    ):
        if why := refusal(config, header, name):  # meanwhile it may have become the master
            raise ArchiveRefused(why)
        _move_into_place(files, StateFolders.of(config.agent))
        rows, history = _ROWS.validate_json(files.get(DECISIONS, b"[]")), History(folder)
        add_decisions(history, rows)
        write_bytes(archive_path(folder), header.line() + body, PRIVATE)
    told = {row.at for row in rows}
    with suppress(SarError):
        since = min(told, default=0.0)
        return [row for row in history.last(MOST_TOLD) if row.at >= since and row.at not in told]
    return []


def _examine(file: str, data: bytes, header: Header, name: str) -> None:
    """Raises `ArchiveRefused` for contents that the agent could not use."""
    try:
        if file in _JSON:
            found = _JSON[file].validate_json(data)
            if file == STATE and found.generation != header.generation:
                raise ArchiveRefused(f"{name}: {file} has generation {found.generation}")
        elif file == LEVELS:
            read_eras(data)
        else:
            number = decode(data, file).generation
            match = GENERATION.fullmatch(file)
            if match and number != int(match[1]):
                raise ArchiveRefused(f"{name}: {file} holds generation {number}")
    except ValidationError as error:
        raise ArchiveRefused(f"{name}: {file} has another format") from error
    except InputError as error:
        raise ArchiveRefused(f"{name}: {error}") from error


def _move_into_place(files: dict[str, bytes], folders: StateFolders) -> None:
    """Raises `InputError`."""
    staging = folders.state / "received"
    shutil.rmtree(staging, ignore_errors=True)
    with disk_errors("cannot be created", staging):
        make_folder(staging / "generations", FOLDER)
        make_folder(folders.state / "generations", FOLDER)
        make_folder(folders.run, PUBLIC_FOLDER)
    try:
        for file in files.keys() - {DECISIONS, ROUTES}:
            write_bytes(staging / file, files[file], _mode(file))
        order = sorted(files.keys() - {DECISIONS, ROUTES, STATE})
        for file in order:  # generations are before the lists
            (staging / file).replace(folders.path(file))
        for file in {*folders.names()} - files.keys():
            folders.path(file).unlink(missing_ok=True)
        for file in CONNECTIONS:  # of another agent
            (folders.state / file).unlink(missing_ok=True)
        if ROUTES in files:
            write_bytes(folders.path(ROUTES), files[ROUTES], _mode(ROUTES))
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


def _mode(file: str) -> int:
    return READABLE if file == ROUTES or GENERATION.fullmatch(file) else PRIVATE


def add_decisions(history: History, rows: list[Row]) -> None:
    """Those that this history does not have: it keeps the decisions of both agents.

    **Weak spot:** two decisions of two machines at the same microsecond count as one."""
    if not rows:
        return
    rows = sorted(rows, key=lambda row: row.at)
    with suppress(SarError):  # a damaged history is no reason to be without routes
        known = {row.at for row in history.after(rows[0].at - 1, MOST_ROWS)}
        if new := [row for row in rows if row.at not in known]:
            history.add(*new)
