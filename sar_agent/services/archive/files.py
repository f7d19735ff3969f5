"""Which files are in an archive, where they are on this machine, and what they were at one moment.

All of them are replaced by renaming, and what was read counts only if no file was replaced
meanwhile. The agent continues from any such moment, as it does after `kill -9`.

Left out is what belongs to one machine or to connections with it: locks,
and the subscribers of five-phase updates. A subscriber that the new agent does not know leaves LID
offset 0 when its lease is over, and that agent waits for so long; a list of subscribers that is a
second old would end that wait too early.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sar_agent.config.model import AgentConfig
from sar_agent.errors import InputError, Unavailable
from sar_agent.util.sqlite_file import HISTORY
from sar_agent.util.text_files import disk_errors

STATE, ROUTES, HINTS, LEASES, LEVELS = (
    "state.json",
    "routes.sar",
    "hints.json",
    "leases.json",
    "levels.bin",
)
"""The state, the routes that OpenSM begins with, hints, leases of routing keys, and service levels
in use; all but the first may be missing."""
DECISIONS = "decisions.json"
"""The newest decisions of the history, in the archive only."""
CONNECTIONS = ("update.json", "subscribers.jsonl")
"""What an archive leaves out, and must not be found beside the state of another agent."""
GENERATION = re.compile(r"generations/([1-9][0-9]{0,18})\.sar")
LARGEST_FILE = 2**30
LARGEST_LIST = 2**26
MOST_FILES = 1024
ATTEMPTS = 20


def largest(name: str) -> int:
    """Bytes that a file of an archive may have; -1 for a name that is in no archive."""
    if name in (STATE, HINTS, LEASES, DECISIONS):
        return LARGEST_LIST
    if name in (ROUTES, LEVELS) or GENERATION.fullmatch(name):
        return LARGEST_FILE
    return -1


Identity = tuple[int, int, int, int]
"""Device, inode, time of the last change and size of a file."""


@dataclass(frozen=True)
class StateFolders:
    """Where the files of an archive are on this machine."""

    state: Path
    run: Path

    @classmethod
    def of(cls, config: AgentConfig) -> StateFolders:
        """As configured."""
        return cls(config.state_dir, config.run_dir)

    def path(self, name: str) -> Path:
        """The place of a file of an archive."""
        return (self.run if name == ROUTES else self.state) / name

    def names(self) -> list[str]:
        """The files that are there, but for decisions."""
        kept = (f"generations/{path.name}" for path in (self.state / "generations").glob("*.sar"))
        lists = (STATE, HINTS, LEASES, LEVELS, ROUTES)
        found = [name for name in lists if self.path(name).is_file()]
        return [*found, *sorted(filter(GENERATION.fullmatch, kept))]

    def identities(self, *, history: bool = False) -> dict[str, Identity]:
        """Of the files that are there, with `history` also of the history: equal as long as nothing
        was replaced."""
        found = {}
        paths = {name: self.path(name) for name in self.names()}
        if history:
            paths[HISTORY] = self.state / HISTORY
        for name, path in paths.items():
            with suppress(FileNotFoundError):
                stat = path.stat()
                found[name] = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        return found

    def read(self) -> dict[str, bytes]:
        """The files as they were at one moment. Raises `Unavailable` where they keep changing, and
        `InputError` where one cannot be read, or is too large."""
        for _ in range(ATTEMPTS):
            before = self.identities()
            for name, identity in before.items():
                if identity[-1] > largest(name):
                    raise InputError(
                        f"has more than {largest(name)} bytes, which no archive takes",
                        file=self.path(name),
                        remedy="look what has written it",
                    )
            with disk_errors("cannot be read", self.state), suppress(FileNotFoundError):
                found = {name: self.path(name).read_bytes() for name in before}
                if self.identities() == before:
                    return found
        raise Unavailable(f"{self.state}: the files change too often to be read together")
