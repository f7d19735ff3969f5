"""The folder for sites without munge on their nodes: a message is a file, its owner the speaker.

watchdog's events only make it quick. The folder is also looked at every few seconds, because a
network file system does not announce what other machines rename in.

A file is read only if it is what a client of ours leaves: a plain file with one name, not longer
than a message. One owner could otherwise lend another's by a link. What is malformed is moved
aside, the last `KEPT` of it.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from sar_agent.errors import Unavailable
from sar_agent.events.hearing import Hearing
from sar_agent.events.message import LONGEST_PAYLOAD, Refused, Why

log = logging.getLogger(__name__)
KEPT = 100
BATCH = 1000
"""Files read without a pause."""


class Spool(FileSystemEventHandler):
    """Reads `folder` from `start` until `stop`, at least every `pause` seconds."""

    def __init__(self, hearing: Hearing, folder: Path, pause: float = 2.0) -> None:
        self.hearing, self.folder, self.pause = hearing, folder, pause
        self.bad = folder / "bad"
        self._touched, self._end = threading.Event(), threading.Event()
        self._stuck: set[str] = set()
        """Files that can neither be read nor moved: said once."""
        self._observer = Observer()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        """Raises `Unavailable` where the folder cannot be read or written."""
        try:
            self.bad.mkdir(mode=0o700, exist_ok=True)
            if self.bad.is_symlink() or self.bad.lstat().st_uid != os.geteuid():
                raise Unavailable(f"{self.bad} is not the agent's own folder; remove it")
            next(self.folder.iterdir())  # our own is there
        except OSError as error:
            raise Unavailable(
                f"events.spool {self.folder} cannot be used ({error.strerror}); it must be there, "
                "and the agent its owner"
            ) from error
        with suppress(OSError):  # out of inotify watches: it is looked at all the same
            self._observer.schedule(self, str(self.folder))
            self._observer.start()
        self._thread.start()

    def stop(self) -> None:
        """What is in the folder then stays for the next start."""
        self._end.set()
        self._touched.set()
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()
        if self._thread.is_alive():
            self._thread.join(2)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """watchdog's call, in its thread."""
        name = str(event.dest_path or event.src_path)
        if event.event_type in ("created", "moved") and name.endswith(".json"):
            self._touched.set()

    def _run(self) -> None:
        while not self._end.is_set():
            self._touched.clear()
            try:
                more = self.read()
            except Exception:
                log.exception("the spool could not be read; this is a bug of sar-agent")
                more = False
            if not more:
                self._touched.wait(self.pause)

    def read(self) -> bool:
        """Take what is there; True if there may be more."""
        try:
            with os.scandir(self.folder) as entries:
                names = [e.name for e in entries if _is_message(e.name)]
        except OSError as error:
            self.hearing.refuse(
                Refused(Why.SLOW, f"{self.folder}: cannot be read ({error.strerror})"), "spool"
            )
            return False
        self._stuck &= set(names)
        fresh = [name for name in names if name not in self._stuck]
        for name in fresh[:BATCH]:
            if self._end.is_set():
                return False
            self._one(self.folder / name)
        return len(fresh) > BATCH

    def _one(self, path: Path) -> None:
        try:
            payload, uid = _read(path)
        except FileNotFoundError:
            return
        except Refused as refused:
            self.hearing.refuse(refused, "spool")
            good = False
        except OSError as error:
            garbage = Refused(Why.GARBAGE, f"{path}: cannot be read ({error.strerror})")
            self.hearing.refuse(garbage, "spool")
            good = False
        else:
            good = self.hearing.file(payload, uid)
        try:
            if good:
                path.unlink()
            else:
                self._aside(path)
        except OSError as error:
            self._stuck.add(path.name)
            log.warning(
                "%s: can neither be removed nor moved (%s); the agent must own the folder",
                path,
                error.strerror,
            )

    def _aside(self, path: Path) -> None:
        path.replace(self.bad / path.name)
        kept = sorted(self.bad.iterdir(), key=lambda one: one.lstat().st_mtime_ns)
        for old in kept[:-KEPT]:
            with suppress(OSError):
                old.unlink()


def _is_message(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _read(path: Path) -> tuple[bytes, int]:
    """What it says, and its owner's uid. Raises `Refused`, `OSError`."""
    # Without waiting for a writer, should it be a pipe, and not through a link.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise Refused(Why.GARBAGE, f"{path}: is no plain file with one name")
        if status.st_size > LONGEST_PAYLOAD + 1:
            raise Refused(Why.OVERSIZE, f"{path}: longer than a message")
        return os.read(file, LONGEST_PAYLOAD + 2), status.st_uid
    finally:
        os.close(file)
