"""An SQLite file of the agent: a damaged one is moved aside and said, and a new one begins.

Nothing is decided from such a file, so losing one costs explanations only.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sar_agent.errors import SarError
from sar_agent.util.owned_files import open_owned

log = logging.getLogger(__name__)
HISTORY = "history.sqlite"
"""What the agent remembers, in its state folder."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class SqliteFile:
    """Tables in the file `path`. Raises `SarError` where the disk does not take or give it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Move the file aside if it is damaged, which is logged."""
        with suppress(SarError):  # the next row says it
            if self.path.exists():
                self.write(lambda base: base.execute("PRAGMA quick_check(1)").fetchone())

    def write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Does `work`; where the file turns out to be damaged, once more on a new one."""
        for again in (False, True):
            try:
                os.close(open_owned(self.path))  # SQLite would go by the umask, and by who runs it
                with self.open() as base:
                    found = work(base)
                if not found or found == ("ok",):
                    return
                damage = str(found)
            except OSError as error:
                raise SarError(f"{self.path}: {error.strerror}") from error
            except SarError as error:
                code = getattr(error.__cause__, "sqlite_errorcode", None) or 0
                if again or code & 0xFF not in _DAMAGED:
                    raise
                damage = str(error)
            self._move_aside(damage)

    @contextmanager
    def open(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        """The file in one transaction; it must exist."""
        where = f"{self.path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
        try:
            with closing(sqlite3.connect(where, timeout=5, uri=True)) as base, base:
                yield base
        except sqlite3.Error as error:
            raise SarError(f"{self.path}: {error}") from error

    def _move_aside(self, damage: str) -> None:
        aside = f".broken-{time.strftime('%Y%m%d-%H%M%S')}"
        for end in ("-journal", ""):  # a journal would be applied to the new file
            path = Path(f"{self.path}{end}")
            with suppress(FileNotFoundError):
                path.rename(f"{path}{aside}")
        log.warning(
            "%s is damaged (%s); it was moved to %s%s, and a new history begins",
            self.path,
            damage,
            self.path.name,
            aside,
        )


def columns_of(base: sqlite3.Connection, table: str) -> set[str]:
    """Names of the columns that a table has; empty where there is no such table."""
    return {name for _, name, *_ in base.execute(f"PRAGMA table_info({table})")}


def add_columns(base: sqlite3.Connection, table: str, wanted: Collection[str]) -> None:
    """Gives a table those of the columns `wanted` that an older agent did not have."""
    known = columns_of(base, table)
    for name in wanted:
        if name not in known:
            base.execute(f"ALTER TABLE {table} ADD COLUMN {name}")
