"""This machine's archive: `archive` in the state folder, written by renaming.

Its edition grows when any file but the history has changed within a generation. An archive that was
taken over from the other machine keeps its edition, so that what both have has one name.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from sar_agent import __version__
from sar_agent.agent.history import History
from sar_agent.agent.state import State
from sar_agent.config.model import Config
from sar_agent.errors import SarError, Unavailable
from sar_agent.services.archive.files import DECISIONS, STATE, StateFolders
from sar_agent.services.archive.format import (
    LONGEST_LINE,
    ArchiveRefused,
    Edition,
    Header,
    digest_of,
    pack,
    read_header,
)
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_bytes

MOST_DECISIONS = 1000
"""The newest decisions of the history, in an archive. The other machine adds them to its own: after
more of them without an archive, its history has a gap."""


def archive_path(folder: Path) -> Path:
    """`folder` is the state folder."""
    return folder / "archive"


def kept_header(folder: Path) -> Header | None:
    """Of the archive on disk; None where there is none that can be read."""
    path = archive_path(folder)
    with suppress(OSError, ArchiveRefused), path.open("rb") as file:
        return read_header(file.readline(LONGEST_LINE), str(path))
    return None


def own_edition(folder: Path, generation: int) -> Edition:
    """Of the state on disk, whose generation this is, as far as an archive was made of it."""
    kept = kept_header(folder)
    return Edition(
        generation, kept.edition if kept is not None and kept.generation == generation else 0
    )


def host_name() -> str:
    """This machine's name, for sentences."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:255]


def make_archive(config: Config, above: Edition | None = None) -> Header:
    """Bring the archive on disk up to date; returns its header. `above`: an edition that the other
    machine has of other files, which this one takes the place of.

    Raises `Unavailable` where nothing was installed yet, else `SarError`."""
    folder = config.agent.state_dir
    files = StateFolders.of(config.agent).read()
    if STATE not in files:
        raise Unavailable(f"{folder / STATE}: nothing was installed yet, so there is no archive")
    generation = _generation(files[STATE], folder / STATE)
    rows = History(folder).last(MOST_DECISIONS)
    files[DECISIONS] = json.dumps([asdict(row) for row in rows]).encode()
    kept, contents = kept_header(folder), digest_of(files)
    known, edition = kept is not None and kept.generation == generation, 1
    if kept is not None and known:
        edition = kept.edition + (kept.contents != contents)
    if above is not None and above.generation == generation:
        edition = max(edition, above.number + 1)
    body, unpacked = pack(files)
    header = Header(
        release=__version__,
        host=host_name(),
        generation=generation,
        edition=edition,
        contents=contents,
        decided=max((row.at for row in rows), default=0.0),
        size=len(body),
        unpacked=unpacked,
        sha256=hashlib.sha256(body).hexdigest(),
    )
    if header != kept:
        write_bytes(archive_path(folder), header.line() + body, PRIVATE)
    return header


def _generation(state: bytes, path: Path) -> int:
    try:
        return State.model_validate_json(state).generation
    except ValueError as error:
        raise SarError(f"{path}: it has another format, so no archive is made of it") from error
