"""What a coordinator that starts again must know, on disk before it is acted on.

`update.json` has the run and is replaced as a whole. `subscribers.jsonl` says who has subscribed: a
line for each that came or went, since thousands may come in a second and each must be on the disk
before it is answered. So a line is appended under the coordinator's lock, and `sync` waits for the
disk without it, once for all that came meanwhile. It is written anew when most of it is history.
Leases and acknowledgements are in neither: a restart gives new leases, and asks for all
acknowledgements again or needs none.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from sar_agent.errors import InputError
from sar_agent.five_phase.messages import Phase
from sar_agent.five_phase.protocol import CoordinatorState, Member
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_text

log = logging.getLogger(__name__)
HISTORY = 4096
"""Lines of those who came and went, at least, before the file is written anew."""


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SavedRun(_Saved):
    """See `CoordinatorState`."""

    phase: Phase
    update: int
    generation: int
    why: str


class SavedMember(_Saved):
    """See `Member`; without a job it is gone."""

    name: str
    job: str | None = None
    uid: int | None = None


class CoordinatorStorage:
    """Two files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.run, self.members = folder / "update.json", folder / "subscribers.jsonl"
        self._file = -1
        self._lines = 0
        self._size = 0
        self._syncing = threading.Lock()
        self._synced = 0

    def load(self) -> CoordinatorState | None:
        """None where nothing usable was saved: then nobody knows who has subscribed."""
        try:
            run = SavedRun.model_validate_json(self.run.read_bytes())
            members = _read(self.members.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is none of ours"
            log.warning(
                "%s: what was saved of the last update cannot be used (%s); subscribers are "
                "waited for as if there had been none",
                self.run,
                what,
            )
            return None
        state = CoordinatorState(run.phase, run.update, run.generation, run.why)
        return replace(state, members=members)

    def save(
        self,
        before: CoordinatorState | None,
        after: CoordinatorState,
        names: Collection[str] | None = None,
    ) -> None:
        """Writes what differs; `names` are all members that may, where that is known. The run is
        on the disk when it returns, members when `sync` does. Raises `InputError`; then nothing
        is different on the disk, or it says more than it should of the run's end."""
        if before is None or _run(before) != _run(after):
            _write(self.run, _run(after).model_dump_json())
        if before is None:
            self._write_all(after)
        elif lines := list(_changes(before, after, names)):
            self._append(lines, after)

    def sync(self) -> None:
        """Until all that was saved of members is on the disk. Raises `InputError`."""
        with self._syncing:
            file, size = self._file, self._size
            if self._synced == size or file < 0:
                return
            try:
                os.fdatasync(file)
            except OSError as error:
                raise _unwritable(self.members, error) from error
            self._synced = size

    def _append(self, lines: list[str], after: CoordinatorState) -> None:
        if self._file < 0 or self._lines > HISTORY + 2 * len(after.members):
            self._write_all(after)
            return
        data = "".join(lines).encode()
        try:
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._forget_half_a_line()
            raise _unwritable(self.members, error) from error
        self._size += len(data)
        self._lines += len(lines)

    def _forget_half_a_line(self) -> None:
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            with self._syncing:
                self._close()  # the next one writes all of it

    def _write_all(self, after: CoordinatorState) -> None:
        lines = [_came(name, one) for name, one in after.members.items()]
        with self._syncing:
            _write(self.members, "".join(lines))
            self._close()
            try:
                self._file = os.open(self.members, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                self._size = self._synced = os.fstat(self._file).st_size
            except OSError as error:
                raise _unwritable(self.members, error) from error
        self._lines = len(lines)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __del__(self) -> None:
        self._close()


def _read(data: bytes) -> dict[str, Member]:
    """What follows the last line end was being written when all ended: nobody was answered."""
    members: dict[str, Member] = {}
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        if not line:
            continue
        one = SavedMember.model_validate_json(line)
        if one.job is None:
            members.pop(one.name, None)
        else:
            members[one.name] = Member(one.job, one.uid, 0.0, 0.0)
    return members


def _changes(
    before: CoordinatorState, after: CoordinatorState, names: Collection[str] | None
) -> Iterator[str]:
    if before.members is after.members:
        return
    some = before.members.keys() ^ after.members.keys() if names is None else names
    for name in some:
        there = after.members.get(name)
        if there and name not in before.members:
            yield _came(name, there)
        elif not there and name in before.members:
            yield json.dumps({"name": name}) + "\n"


def _came(name: str, one: Member) -> str:
    return json.dumps({"name": name, "job": one.job, "uid": one.uid}) + "\n"


def _run(state: CoordinatorState) -> SavedRun:
    return SavedRun(
        phase=state.phase, update=state.update, generation=state.generation, why=state.why
    )


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be written ({error.strerror})",
        file=path,
        remedy="check the folder and its free space",
    )


def _write(path: Path, text: str) -> None:
    write_text(path, text + "\n", PRIVATE)
