"""An SQLite file of the agent: a damaged one is moved aside and said, and a new one begins.

A file of an older release has fewer columns. They are added when the next row is written; until
then their fields have their defaults, and in old rows for good. A column of a newer release stays.

Nothing is decided from such a file, so losing one costs explanations only. Where the file is sound
and a row is not, such as one with a flipped bit or with a value of another type, that row is left
out and said. So each row has a checksum: a column that SQLite sets whenever the row is written, by
triggers of the connection, so that a release without them can write to the file, too.

**Weak spots:** rows of a release without checksums have none; where it replaces a row of today's
jobs that has one, the row is left out later. A flipped bit in SQLite's own header of a row may hide
the checksum (2 of 7,500 random bits of 20 rows). Sums that SQLite makes of a whole table
(`JobDays.saved`) count rows without a look at their checksums.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import MISSING, fields
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sar_agent.errors import SarError
from sar_agent.util.owned_files import open_owned
from sar_agent.util.set_aside import set_aside

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

log = logging.getLogger(__name__)
HISTORY = "history.sqlite"
"""What the agent remembers, in its state folder."""
CHECKSUM = "checksum"
"""The column of it; NULL in rows of older releases."""
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
                base.text_factory = _text
                yield base
        # The name of a column is no text; a number is larger than SQLite's.
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise SarError(f"{self.path}: {error}") from error

    def _move_aside(self, damage: str) -> None:
        aside = set_aside(self.path, "-journal")  # which would be applied to the new file
        log.warning(
            "%s is damaged (%s); it was moved to %s, and a new history begins",
            self.path,
            damage,
            aside,
        )


def _text(data: bytes) -> str | bytes:
    """The bytes themselves where they are no text: no value of a column."""
    with suppress(UnicodeDecodeError):
        return data.decode()
    return data


def _checksum(*cells: Any) -> int:
    """Of a row: its columns' names, each followed by the value. A column without a value does not
    count, so that one can be added later."""
    row = sorted(
        (name, value.encode() if isinstance(value, str) else value)
        for name, value in zip(cells[::2], cells[1::2], strict=True)
        if value is not None and name != CHECKSUM
    )
    return zlib.crc32(repr(row).encode())


_TYPES: dict[str, tuple[type, ...]] = {
    "float": (float, int),
    "int": (int,),
    "str": (str,),
    "bool": (int,),
}
_SAID = set[tuple[Path, str]]()
"""Files and tables of which damaged rows were logged."""


Row = TypeVar("Row", bound="DataclassInstance")


class SqliteTable(SqliteFile, Generic[Row]):
    """The table `table`, a column for each field of the dataclass `kind`; fields of lists and
    dictionaries are JSON. `form` is SQL behind the table's name, `%s` stands for the columns. A
    field that a release adds must have a default."""

    def __init__(self, path: Path, table: str, kind: type[Row], form: str) -> None:
        super().__init__(path)
        self.table, self.kind = table, kind
        self._fields = {column.name: column for column in fields(kind)}
        self._json = {name for name, column in self._fields.items() if "[" in str(column.type)}
        self._columns = ", ".join(self._fields)
        self.damaged = 0
        """Rows that the last `select` has left out."""
        self.create = f"CREATE TABLE IF NOT EXISTS {table} {form % self._columns}"

    def prepare(self, base: sqlite3.Connection) -> None:
        """The table is there afterwards, with a column for each field, and rows that are written
        get their checksum."""
        base.execute(self.create)
        needed = {*self._fields, CHECKSUM}
        if not needed <= self._columns_of(base):
            base.execute("BEGIN IMMEDIATE")  # a rollback by hand may do the same now
            for name in needed - self._columns_of(base):
                base.execute(f"ALTER TABLE {self.table} ADD COLUMN {name}")
        names = sorted(self._columns_of(base) - {CHECKSUM})
        # As bytes: a text that is none is no argument of a function.
        cells = (f"'{n}', iif(typeof({n}) = 'text', CAST({n} AS BLOB), {n})" for n in names)
        change = f"SET {CHECKSUM} = row_checksum({', '.join(cells)}) WHERE rowid = NEW.rowid"
        base.create_function("row_checksum", -1, _checksum, deterministic=True)
        for event, name in (("INSERT", "new"), (f"UPDATE OF {', '.join(names)}", "changed")):
            base.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS {self.table}_{name} "
                f"AFTER {event} ON main.{self.table} BEGIN UPDATE {self.table} {change}; END"
            )

    def _columns_of(self, base: sqlite3.Connection) -> set[str]:
        """Empty where the table was not made yet."""
        return {name for _, name, *_ in base.execute(f"PRAGMA table_info({self.table})")}

    def upsert(self, base: sqlite3.Connection, rows: Iterable[Row]) -> None:
        """Writes rows, in place of those with the same primary key."""
        self.prepare(base)
        marks = ", ".join("?" * len(self._fields))
        values = (
            [
                json.dumps(v) if k in self._json else v
                for k, v in zip(self._fields, cells, strict=True)
            ]
            for cells in map(attrgetter(*self._fields), rows)
        )
        changed = ", ".join(f"{name} = excluded.{name}" for name in self._fields)
        base.executemany(
            f"INSERT INTO {self.table} ({self._columns}) VALUES ({marks}) "
            f"ON CONFLICT DO UPDATE SET {changed}",
            values,
        )

    def select(self, rest: str, *values: object) -> list[Row]:
        """The rows that `rest` of an SQL query chooses; none where nothing was written yet. Damaged
        JSON, and what the file does not have, is the field's default; damaged rows are left out,
        which is logged once."""
        names, found = self._query(f"SELECT * FROM {self.table} {rest}", *values)
        rows = [dict(zip(names, row, strict=True)) for row in found]
        sound = [
            [row.get(name) for name in self._fields]  # a damaged name is another one
            for row in rows
            if row.get(CHECKSUM) in (None, _checksum(*chain(*row.items())))
        ]
        sound = [each for each in sound if all(map(self._may_be, self._fields, each))]
        self.damaged = len(found) - len(sound)
        if self.damaged and (self.path, self.table) not in _SAID:
            _SAID.add((self.path, self.table))
            log.warning("%s: %s", self.path, self.damage)
        return [self.kind(*map(self._read, self._fields, each)) for each in sound]

    @property
    def damage(self) -> str:
        """What the last `select` has left out, in words; empty where that was nothing."""
        rows = f"{self.damaged} row{'s' * (self.damaged != 1)}"
        return f"{rows} of {self.table} are damaged and left out" * bool(self.damaged)

    def _may_be(self, name: str, value: Any) -> bool:
        """Whether the column may have such a value."""
        column = self._fields[name]
        kind, _, optional = str(column.type).partition(" | ")
        if name in self._json or (value is None and (optional or column.default is not MISSING)):
            return True
        return isinstance(value, _TYPES.get(kind, (object,)))

    def query(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What an SQL query over the table gives; nothing where nothing was written yet."""
        return self._query(query, *values)[1]

    def _query(self, query: str, *values: object) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The same, and the names of what it gives."""
        if not self.path.exists():
            return [], []
        with self.open(write=False) as base:
            if not (known := self._columns_of(base)):
                return [], []
            needed = {*self._fields, CHECKSUM}
            if missing := "".join(f", NULL AS {name}" for name in needed - known):
                # It takes the place of the table in all queries of this connection.
                every = f"SELECT *{missing} FROM main.{self.table}"
                base.execute(f"CREATE TEMP VIEW {self.table} AS {every}")
            found = base.execute(query, values)
            return [name for name, *_ in found.description], found.fetchall()

    def _read(self, name: str, value: Any) -> Any:
        column = self._fields[name]
        if value is None and column.default is not MISSING:
            return column.default
        if name not in self._json:
            return bool(value) if column.type == "bool" else value
        with suppress(TypeError, ValueError):
            return json.loads(value)
        return None if column.default_factory is MISSING else column.default_factory()
