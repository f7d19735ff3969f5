"""A lock file that names the process holding it: one agent per site."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from sar_agent.errors import SarError, Unavailable
from sar_agent.util.owned_files import make_folder, open_owned

ANOTHER = "another agent runs, stop one of them"
"""What `agent.lock` says."""


class Lock:
    """`with Lock(folder, "agent.lock"):` holds the lock until the block or the process ends.

    Raises `Unavailable` if another process holds it for longer than `patience` seconds; the
    sentence says which process and since when, after what the lock `says`. Raises `SarError` if the
    file cannot be created.
    """

    def __init__(self, folder: Path, name: str, patience: float = 0.5, says: str = "") -> None:
        self.path, self.patience, self.says = folder / name, patience, says
        self._file: IO[str] | None = None

    def __enter__(self) -> Lock:
        file = self._open()
        end = time.monotonic() + self.patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    file.seek(0)
                    holder = file.read().strip() or "another process"
                    file.close()
                    said = f"{self.says} ({self.path})" if self.says else str(self.path)
                    raise Unavailable(f"{said}: held by {holder}") from None
                time.sleep(0.05)
        self._file = file
        try:
            file.truncate(0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(f"process {os.getpid()} since {since}\n")
            file.flush()
        except OSError:  # UnsupportedOperation is one: it is open for reading only
            pass  # a full disk: the file cannot name this process, but the lock is held
        return self

    def _open(self) -> IO[str]:
        try:
            make_folder(self.path.parent)
            return os.fdopen(open_owned(self.path), "r+")
        except OSError as error:
            # A read-only disk, or another user's file: opening for reading is enough to lock it.
            with suppress(OSError):
                return self.path.open()
            raise SarError(
                f"{self.path}: cannot be created ({error.strerror}); may this user write there?"
            ) from error

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def holder(folder: Path, name: str) -> str:
    """The process that holds the lock, `process 17 since …`; empty where none does. This does not
    acquire the lock."""
    try:
        with (folder / name).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "another process"
    except OSError:
        pass
    return ""
