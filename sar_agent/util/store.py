"""A value that outlives its process, as JSON in a file of the state folder."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from sar_agent.errors import InputError
from sar_agent.util.owned_files import PRIVATE, sync_folder
from sar_agent.util.problem_log import ProblemLog
from sar_agent.util.set_aside import set_aside
from sar_agent.util.text_files import disk_errors, write_bytes

log = logging.getLogger(__name__)
SPARE_BYTES = 256
"""Bytes by which a saved value may be longer than the one that room was reserved for."""
T = TypeVar("T")
_BROKEN = IsADirectoryError, ValidationError


class JsonStore(Generic[T]):
    """The file `path` with a value of `kind`, a type that pydantic validates. `broken` says what
    follows where the file holds none, or what to do about it."""

    def __init__(self, path: Path, kind: Any, broken: str, *, indent: int | None = None) -> None:
        self.path, self._broken, self._indent = path, broken, indent
        self._type: TypeAdapter[T] = TypeAdapter(kind)
        self._room = path.with_suffix(".room")
        """A file of the size that a reserved value needs at most."""
        self._reserved = 0
        """Bytes of it; 0 where nothing is reserved."""
        self._unsaved: T | None = None
        self._foreign = False
        """Whether the file holds something else, which the next value must not overwrite."""
        self._problems = ProblemLog(log)

    def read(self) -> T | None:
        """The value on disk; None where there is no file. Raises `InputError` where it holds no
        such value, or cannot be read and may hold anything."""
        try:
            return self._type.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except _BROKEN as error:
            raise InputError(
                "cannot be used (it has another format)", file=self.path, remedy=self._broken
            ) from error
        except OSError as error:
            raise InputError(
                f"cannot be read ({error.strerror})",
                file=self.path,
                remedy=f"give it to the agent's user: chown {_owner(self.path.parent)} {self.path}",
            ) from error

    def load(self, *, required: bool = False) -> T | None:
        """The value that was saved last; None where there is none, or it cannot be used, which is
        logged once. With `required` it raises `InputError` where the file cannot be read."""
        if self._unsaved is not None:
            return self._unsaved
        try:
            return self.read()
        except InputError as error:
            self._foreign = isinstance(error.__cause__, _BROKEN)
            if required and not self._foreign:
                raise
            self._problems.problem("", str(error))
            return None

    def write(self, value: T) -> None:
        """Replace the file in one step. One that `load` could not use is moved aside. Raises
        `InputError` where the disk does not take it."""
        if self._foreign:
            with suppress(OSError):
                log.warning("%s was moved to %s", self.path, set_aside(self.path))
            self._foreign = False
        text = self._text(value)
        if len(text) <= self._reserved:
            self._write_reserved(text)
        else:
            write_bytes(self.path, text, PRIVATE)

    def save(self, value: T) -> bool:
        """`write`; where the disk does not take the value, this is logged once, `load` returns it
        all the same, and the result is False."""
        try:
            self.write(value)
        except InputError as error:
            self._unsaved = value
            self._problems.problem("", f"{error}; it is kept in memory only")
            return False
        self._unsaved = None
        self._problems.problem("", "", f"{self.path}: could be written")
        return True

    def reserve(self, value: T) -> None:
        """Make sure that the disk takes a value like this one, up to `SPARE_BYTES` longer, when it
        is saved. Raises `InputError` where the disk does not."""
        room = self._text(value) + b" " * SPARE_BYTES
        write_bytes(self._room, room, PRIVATE)
        self._reserved = len(room)

    def release(self) -> None:
        """Give back what was reserved and not used."""
        if self._reserved:
            self._reserved = 0
            self.drop_reserved()

    def reserved(self) -> T | None:
        """The value that room was made for by a process that ended before it saved or released it;
        None where there is none."""
        with suppress(OSError, ValidationError):
            return self._type.validate_json(self._room.read_bytes())
        return None

    def drop_reserved(self) -> None:
        """Forget it."""
        with suppress(OSError):
            self._room.unlink(missing_ok=True)

    def _write_reserved(self, text: bytes) -> None:
        """Into the reserved file, which then takes the other's place: that needs no more room."""
        with disk_errors("cannot be written", self.path):
            with self._room.open("r+b") as file:
                file.write(text[:-1].ljust(self._reserved - 1) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self._room.replace(self.path)
            sync_folder(self.path.parent)
        self._reserved = 0

    def _text(self, value: T) -> bytes:
        return self._type.dump_json(value, indent=self._indent) + b"\n"


def _owner(folder: Path) -> str:
    """`user:group` of the folder, for a command; the agent's own where that is not known."""
    try:
        return f"{folder.owner()}:{folder.group()}"
    except (OSError, KeyError):
        return "sar-agent:sar-agent"
