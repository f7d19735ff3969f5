"""A snapshot: which files an agent's state has at one moment, each with its digest.

All of them are replaced by renaming, and a list counts only if no file was replaced while it was
made. Whoever copies the files compares each with its digest, and begins again where one has
changed. The agent continues from any such moment, as it does after `kill -9`.

**Weak spot:** a state that changes more often than its files can be copied is never copied. The
files that change often (hints, leases) are small, and a copy is tried `peer_link.COPY_ATTEMPTS`
times.

Left out is what belongs to one machine or to connections with it: locks,
and the subscribers of five-phase updates. A subscriber that the new agent does not know leaves LID
offset 0 when its lease is over, and that agent waits for so long; a list of subscribers that is a
second old would end that wait too early.
"""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
SNAPSHOT_ATTEMPTS = 20


class SnapshotFile(BaseModel):
    """One file of a snapshot, by its name in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(max_length=64)
    size: int = Field(ge=0)
    digest: str = Field(pattern="^[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _is_bounded(self) -> SnapshotFile:
        if self.size > largest(self.name):
            raise ValueError(f"{self.name} of {self.size} bytes is in no snapshot")
        return self


Snapshot = frozenset[SnapshotFile]


def largest(name: str) -> int:
    """Bytes that a file of a snapshot may have; -1 for a name that is in no snapshot."""
    if name in (STATE, "hints.json", "leases.json"):
        return LARGEST_LIST
    if name in (ROUTES, "levels.bin") or GENERATION.fullmatch(name):
        return LARGEST_FILE
    return -1


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
        """The files that are there."""
        kept = (f"generations/{path.name}" for path in (self.state / "generations").glob("*.sar"))
        found = [name for name in (STATE, *LISTS, ROUTES) if self.path(name).is_file()]
        return [*found, *filter(GENERATION.fullmatch, kept)]


Identity = tuple[int, int, int, int]
"""Device, inode, time of the last change and size of a file."""


class SnapshotSource:
    """Takes snapshots of `folders`. Safe from any thread. The digest of a file that did not change
    is not computed again."""

    def __init__(self, folders: StateFolders) -> None:
        self.folders = folders
        self._digests: dict[Identity, str] = {}
        self._lock = threading.Lock()

    def snapshot(self) -> Snapshot:
        """Raises `Unavailable` where files keep changing, `OSError` where one cannot be read."""
        with self._lock:
            for _ in range(SNAPSHOT_ATTEMPTS):
                files = self._identities()
                with suppress(FileNotFoundError):  # replaced or removed a moment ago
                    digests = {
                        identity: self._digests.get(identity) or self._digest(name)
                        for name, identity in files.items()
                    }
                    if self._identities() == files:
                        self._digests = digests
                        return frozenset(
                            SnapshotFile(name=name, size=identity[-1], digest=digests[identity])
                            for name, identity in files.items()
                        )
        raise Unavailable(f"{self.folders.state}: the files change too often for a snapshot")

    def _identities(self) -> dict[str, Identity]:
        found = {}
        for name in self.folders.names():
            with suppress(FileNotFoundError):
                stat = self.folders.path(name).stat()
                if stat.st_size > largest(name):
                    raise Unavailable(
                        f"{self.folders.path(name)} has more than {largest(name)} bytes"
                    )
                found[name] = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        return found

    def _digest(self, name: str) -> str:
        with self.folders.path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
