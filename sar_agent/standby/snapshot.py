"""A snapshot: the files of an agent's state as they were at one moment.

All of them are replaced by renaming, so an open file keeps its contents. A snapshot opens all
files, then looks whether one was replaced meanwhile; the agent continues from any such moment, as
it does after `kill -9`. The digest of a file that did not change is not computed again.

Left out is what belongs to one machine or to connections with it: locks,
and the subscribers of five-phase updates. A subscriber that the new agent does not know leaves LID
offset 0 when its lease is over, and that agent waits for so long; a list of subscribers that is a
second old would end that wait too early.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field

from sar_agent.config.model import AgentConfig
from sar_agent.errors import Unavailable

STATE, ROUTES = "state.json", "routes.sar"
LISTS = ("hints.json", "leases.json", "levels.bin")
"""Hints, leases of routing keys, service levels in use; each may be missing."""
CONNECTIONS = ("update.json", "subscribers.jsonl")
"""What a snapshot leaves out, and must not be found beside one."""
GENERATION = re.compile(r"generations/([1-9][0-9]{0,18})\.sar")
LARGEST_FILE = 2**30
LARGEST_LIST = 2**26
MOST_FILES = 1024
ATTEMPTS = 20
PIECE = 2**20


class SnapshotFile(BaseModel):
    """One file of a snapshot, by its name in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(max_length=64)
    size: int = Field(ge=0, le=LARGEST_FILE)
    digest: str = Field(pattern="^[0-9a-f]{64}$")


def largest(name: str) -> int:
    """Bytes that a file of a snapshot may have; 0 for a name that is in no snapshot."""
    if name in (STATE, "hints.json", "leases.json"):
        return LARGEST_LIST
    if name in (ROUTES, "levels.bin") or GENERATION.fullmatch(name):
        return LARGEST_FILE
    return 0


@dataclass(frozen=True)
class StateFolders:
    """Where the files of a snapshot are on this machine."""

    state: Path
    run: Path

    @classmethod
    def of(cls, config: AgentConfig) -> StateFolders:
        """As configured."""
        return cls(config.state_dir, config.run_dir)

    def path(self, name: str) -> Path:
        """The place of a file whose name `largest` knows."""
        return (self.run if name == ROUTES else self.state) / name

    def names(self) -> list[str]:
        """The files that are there, in an order that is the same on all machines."""
        kept = sorted(f"generations/{p.name}" for p in (self.state / "generations").glob("*.sar"))
        found = [name for name in (STATE, *LISTS, ROUTES) if self.path(name).is_file()]
        return [*found, *filter(GENERATION.fullmatch, kept)]


@dataclass
class Snapshot:
    """Open files; `close` ends it."""

    files: tuple[SnapshotFile, ...]
    digest: str
    """Names the contents of all files."""
    _open: dict[str, BinaryIO]
    _stack: ExitStack

    def read(self, digest: str) -> Iterator[bytes]:
        """The contents with this digest, in pieces. Raises `KeyError` where there are none."""
        file = self._open[digest]
        at = 0
        while piece := os.pread(file.fileno(), PIECE, at):
            at += len(piece)
            yield piece

    def contents(self, name: str) -> bytes | None:
        """The contents of a file by its name; None where the snapshot has none."""
        for file in self.files:
            if file.name == name:
                return b"".join(self.read(file.digest))
        return None

    def close(self) -> None:
        """Close all files."""
        self._stack.close()


Identity = tuple[int, int, int, int]


class SnapshotSource:
    """Takes snapshots of `folders`. One thread at a time."""

    def __init__(self, folders: StateFolders) -> None:
        self.folders = folders
        self._digests: dict[Identity, str] = {}

    def version(self) -> tuple[tuple[str, Identity], ...]:
        """Changes whenever a snapshot would be another one."""
        found = []
        for name in self.folders.names():
            with suppress(FileNotFoundError):
                found.append((name, _identity(self.folders.path(name).stat())))
        return tuple(found)

    def take(self) -> Snapshot:
        """Raises `Unavailable` where files keep changing, `OSError` where one cannot be read."""
        for _ in range(ATTEMPTS):
            before = self.version()
            stack = ExitStack()
            try:
                snapshot = self._open_all(stack)
            except FileNotFoundError:  # replaced or removed a moment ago
                stack.close()
                continue
            except BaseException:
                stack.close()
                raise
            if self.version() == before:
                return snapshot
            stack.close()
        raise Unavailable(f"{self.folders.state}: the files change too often for a snapshot")

    def _open_all(self, stack: ExitStack) -> Snapshot:
        files: list[SnapshotFile] = []
        opened: dict[str, BinaryIO] = {}
        digests: dict[Identity, str] = {}
        names = self.folders.names()
        kept = [name for name in names if GENERATION.fullmatch(name)]
        newest = sorted(kept, key=lambda name: int(name.split("/")[1][:-4]))[-MOST_FILES // 2 :]
        for name in [name for name in names if name not in kept or name in newest]:
            file = stack.enter_context(self.folders.path(name).open("rb"))
            stat = os.fstat(file.fileno())
            if stat.st_size > largest(name):
                raise Unavailable(f"{self.folders.path(name)} has more than {largest(name)} bytes")
            identity = _identity(stat)
            digest = digests[identity] = self._digests.get(identity) or _digest(file)
            opened[digest] = file
            files.append(SnapshotFile(name=name, size=stat.st_size, digest=digest))
        self._digests = digests
        return Snapshot(tuple(files), digest_of(files), opened, stack)


def digest_of(files: list[SnapshotFile] | tuple[SnapshotFile, ...]) -> str:
    """The digest of a snapshot with these files, in any order."""
    lines = sorted(f"{file.name} {file.size} {file.digest}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _digest(file: BinaryIO) -> str:
    state = hashlib.sha256()
    at = 0
    while piece := os.pread(file.fileno(), PIECE, at):
        at += len(piece)
        state.update(piece)
    return state.hexdigest()


def _identity(stat: os.stat_result) -> Identity:
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
