"""What a coordinator must know after a restart, on disk before it acts on it.

`update.json` holds the run and is replaced as a whole. `subscribers.jsonl` has a line for each
subscriber that came or went, since thousands may come in a second and each must be on disk before
it is answered. A line is appended under the coordinator's lock; `sync` waits for the disk without
the lock, once for all lines that were appended meanwhile. The file is rewritten when most of it is
history. Leases and acknowledgements are in neither file: a restart gives new leases, and requires
all acknowledgements again or none.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import threading
import zlib
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, model_validator

from sar_agent.services.five_phase.messages import Phase
from sar_agent.services.five_phase.protocol import CoordinatorState, Member
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.set_aside import set_aside
from sar_agent.util.store import JsonStore
from sar_agent.util.text_files import CHECK_DISK, disk_errors, write_text

log = logging.getLogger(__name__)
WITHOUT_SUBSCRIBERS = "the agent starts without known subscribers, and waits for their leases"
_BEGIN = b'{"name": "'
_WHOLE = re.compile(rb'"sum": \d+}.', re.DOTALL)
"""The end of a whole line, and another byte in place of its line end."""
FORMER_LINES = 4096
"""Lines of former subscribers, at least, before the file is rewritten."""


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SavedRun(_Saved):
    """The run of a `CoordinatorState`."""

    phase: Phase
    update: int
    generation: int
    why: str


class SavedMember(_Saved):
    """A `Member` that came; without a job, one that went. `sum` is a checksum of the rest: a
    subscriber of another name would not be waited for. Lines of older releases have none."""

    name: str
    job: str | None = None
    uid: int | None = None
    sum: int | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> SavedMember:
        if self.sum not in (None, _sum(self.name, self.job, self.uid)):
            raise ValueError("the checksum differs")
        return self


class CoordinatorStorage:
    """The two files, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.run: JsonStore[SavedRun] = JsonStore(
            folder / "update.json", SavedRun, "the agent starts without known subscribers"
        )
        self.members = folder / "subscribers.jsonl"
        self._file = -1
        self._lines = 0
        self._size = 0
        self._syncing = threading.Lock()
        self._synced = 0

    def load(self) -> CoordinatorState | None:
        """The saved state; None if nothing usable was saved: then the subscribers are unknown."""
        run = self.run.load()
        try:
            members = _read(self.members.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning(
                "%s: cannot be read (%s); %s", self.members, error.strerror, WITHOUT_SUBSCRIBERS
            )
            return None
        except ValueError:
            kept = ""
            with suppress(OSError):
                kept = f"it was moved to {set_aside(self.members)}; "
            log.warning("%s: is damaged; %s%s", self.members, kept, WITHOUT_SUBSCRIBERS)
            return None
        if run is None:
            return None
        state = CoordinatorState(run.phase, run.update, run.generation, run.why)
        return replace(state, members=members)

    def save(
        self, before: CoordinatorState | None, after: CoordinatorState, names: Collection[str]
    ) -> None:
        """Writes the differences; `names` are the members that may differ. The run is on disk when
        this returns, members when `sync` returns. Raises `InputError`; then nothing has changed on
        disk, or it is ahead of the state about the end of the run."""
        if before is None or _run(before) != _run(after):
            self.run.write(_run(after))
        if before is None:
            self._write_all(after)
        elif lines := list(_changes(before, after, names)):
            self._append(lines, after)

    def sync(self) -> None:
        """Waits until all saved members are on disk. Raises `InputError`."""
        with self._syncing:
            file, size = self._file, self._size
            if self._synced == size or file < 0:
                return
            with self._writing():
                os.fdatasync(file)
            self._synced = size

    def _append(self, lines: list[str], after: CoordinatorState) -> None:
        if self._file < 0 or self._lines > FORMER_LINES + 2 * len(after.members):
            self._write_all(after)
            return
        data = "".join(lines).encode()
        with self._writing():
            try:
                if os.write(self._file, data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                self._cut_partial_line()
                raise
        self._size += len(data)
        self._lines += len(lines)

    def _writing(self) -> AbstractContextManager[None]:
        return disk_errors("cannot be written", self.members, CHECK_DISK)

    def _cut_partial_line(self) -> None:
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            with self._syncing:
                self._close()  # the next save rewrites the file

    def _write_all(self, after: CoordinatorState) -> None:
        lines = [_came(name, member) for name, member in after.members.items()]
        with self._syncing:
            write_text(self.members, "".join(lines) + "\n", PRIVATE)
            self._close()
            with self._writing():
                self._file = os.open(self.members, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                self._size = self._synced = os.fstat(self._file).st_size
        self._lines = len(lines)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __del__(self) -> None:
        self._close()


def _read(data: bytes) -> dict[str, Member]:
    """The members. A partial last line is ignored: its subscriber was not answered. Raises
    `ValueError` where the file is damaged; it has a line end at least, since it was written."""
    members: dict[str, Member] = {}
    partial = data[data.rfind(b"\n") + 1 :].rstrip(b"\0")
    if b"\n" not in data or not _BEGIN.startswith(partial[: len(_BEGIN)]):
        raise ValueError
    if _WHOLE.search(partial):
        raise ValueError
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        if not line:
            continue
        saved = SavedMember.model_validate_json(line)
        if saved.job is None:
            members.pop(saved.name, None)
        else:
            members[saved.name] = Member(saved.job, saved.uid, 0.0, 0.0)
    return members


def _changes(
    before: CoordinatorState, after: CoordinatorState, names: Collection[str]
) -> Iterator[str]:
    for name in names:
        member = after.members.get(name)
        if member and name not in before.members:
            yield _came(name, member)
        elif not member and name in before.members:
            yield json.dumps({"name": name, "sum": _sum(name, None, None)}) + "\n"


def _came(name: str, member: Member) -> str:
    saved = {"name": name, "job": member.job, "uid": member.uid}
    return json.dumps(saved | {"sum": _sum(name, member.job, member.uid)}) + "\n"


def _sum(name: str, job: str | None, uid: int | None) -> int:
    return zlib.crc32(f"{name} {job} {uid}".encode())


def _run(state: CoordinatorState) -> SavedRun:
    return SavedRun(
        phase=state.phase, update=state.update, generation=state.generation, why=state.why
    )
