"""The spool folder, for sites without munge on their nodes: each file is a message of its owner.

watchdog's events only make it faster. The folder is also read every few seconds, because a network
file system does not report files that other machines rename into it.

A file is read only if it looks like those of sar-notify: a regular file with one link, not longer
than a message, writable for nobody but its owner. Malformed files are moved to a subfolder, which
keeps the last `KEPT`.

In a folder that everybody may write to, the owner of a file proves little: any user who has a file
of root's in an own folder can rename it into the spool. In such a folder, a file of root or
SlurmUser only makes the agent read the queue, and its traffic hint is ignored. A file of `nobody`,
to which file servers map the root of other machines, is never accepted as one of
`events.trusted_users`.
"""

from __future__ import annotations

import logging
import os
import pwd
import secrets
import stat
import threading
from contextlib import suppress
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from sar_agent.errors import Unavailable
from sar_agent.events.dispatch import Dispatcher
from sar_agent.events.message import LONGEST_PAYLOAD, MessageRefused, RefusalReason

log = logging.getLogger(__name__)
KEPT = 100
"""Malformed files that are kept."""
BATCH = 1000
"""Files that are read without a pause."""
MOST_STUCK = 10_000
"""Files that can neither be removed nor moved, at most; with more, the folder is not read."""


class Spool(FileSystemEventHandler):
    """Reads `folder` between `start` and `stop`, at least every `pause` seconds."""

    def __init__(self, dispatcher: Dispatcher, folder: Path, pause: float = 2.0) -> None:
        self.dispatcher, self.folder, self.pause = dispatcher, folder, pause
        self.bad = folder / "bad"
        self._touched, self._end = threading.Event(), threading.Event()
        self._stuck: set[str] = set()
        """Names of files that can neither be removed nor moved."""
        self._warned: set[str] = set()
        """Warnings that were logged; each is logged once."""
        self._observer = Observer()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        """Raises `Unavailable` if the folder cannot be read or written."""
        try:
            self._make_bad()
            next(self.folder.iterdir())  # raises nothing else: `bad` is in it
            self._sole_writers()
        except OSError as error:
            raise Unavailable(
                f"events.spool {self.folder} cannot be used ({error.strerror}); it must exist, and "
                "the agent must own it"
            ) from error
        with suppress(OSError):  # no inotify watch is left: the folder is read all the same
            self._observer.schedule(self, str(self.folder))
            self._observer.start()
        self._thread.start()

    def stop(self) -> None:
        """Stops reading; files that are left stay for the next start."""
        self._end.set()
        self._touched.set()
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()
        if self._thread.is_alive():
            self._thread.join(2)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog, in its thread."""
        name = str(event.dest_path or event.src_path)
        if event.event_type in ("created", "moved") and name.endswith(".json"):
            self._touched.set()

    def _run(self) -> None:
        while not self._end.is_set():
            self._touched.clear()
            try:
                more = self.read()
            except Exception as error:
                self.dispatcher.counters.unexpected.caught("spool", error)
                more = False
            if not more:
                self._touched.wait(self.pause)

    def read(self) -> bool:
        """Handles the files in the folder; True if there may be more."""
        stuck: set[str] = set()
        fresh: list[str] = []
        try:
            certain = self._sole_writers()
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name in self._stuck:
                        stuck.add(entry.name)
                    elif _is_message(entry.name) and len(fresh) <= BATCH:
                        fresh.append(entry.name)
        except OSError as error:
            self.dispatcher.refuse(
                MessageRefused(
                    RefusalReason.SLOW, f"{self.folder}: cannot be read ({error.strerror})"
                ),
                "spool",
            )
            return False
        self._stuck = stuck
        if len(stuck) >= MOST_STUCK:
            self._warn_once(
                f"{self.folder}: {MOST_STUCK} files can neither be removed nor moved, so it is not "
                "read; the agent must own the folder"
            )
            return False
        for name in fresh[:BATCH]:
            if self._end.is_set():
                return False
            self._read_one(self.folder / name, certain)
        return len(fresh) > BATCH

    def _read_one(self, path: Path, certain: bool) -> None:
        try:
            accepted = self._accept(path, certain)
        except FileNotFoundError:
            return
        except Exception as error:  # the next file may be in order
            self.dispatcher.counters.unexpected.caught("spool", error)
            accepted = False
        try:
            if accepted:
                path.unlink()
            else:
                self._move_aside(path)
        except OSError as error:
            self._stuck.add(path.name)
            self._warn_once(
                f"{self.folder}: files in it can neither be removed nor moved ({error.strerror}), "
                f"{path.name} among them; the agent must own the folder"
            )

    def _accept(self, path: Path, certain: bool) -> bool:
        """False if the file is refused. Raises `FileNotFoundError`."""
        try:
            payload, uid = _read(path)
            if uid in self.dispatcher.trusted and uid in _nobodies():
                raise MessageRefused(
                    RefusalReason.NOT_ALLOWED,
                    f"{path}: its owner is nobody, which may stand for root of any machine; let "
                    "SlurmUser write to the spool",
                )
        except FileNotFoundError:
            raise
        except MessageRefused as refused:
            self.dispatcher.refuse(refused, "spool")
            return False
        except OSError as error:
            garbage = MessageRefused(
                RefusalReason.GARBAGE, f"{path}: cannot be read ({error.strerror})"
            )
            self.dispatcher.refuse(garbage, "spool")
            return False
        return self.dispatcher.accept_file(payload, uid, certain=certain)

    def _move_aside(self, path: Path) -> None:
        if stat.S_ISDIR(path.lstat().st_mode):
            # Only its owner may move a folder into another folder, but we can rename it in ours.
            with suppress(OSError):
                path.rmdir()
                return
            path.rename(path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}"))
            return
        path.replace(self.bad / path.name)
        kept = sorted(self.bad.iterdir(), key=lambda file: file.lstat().st_mtime_ns)
        for old in kept[:-KEPT]:
            with suppress(OSError):
                old.unlink()

    def _make_bad(self) -> None:
        """Creates the folder for malformed files. If another user has created something of that
        name, renames it. Raises `OSError`, `Unavailable`."""
        for _ in range(10):
            with suppress(FileExistsError):
                self.bad.mkdir(mode=0o700)
            status = self.bad.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                self.bad.chmod(0o700)
                return
            self._warn_once(f"{self.bad}: was created by uid {status.st_uid}; the agent renames it")
            self.bad.rename(self.folder / f".bad.{secrets.token_hex(4)}")
        raise Unavailable(f"{self.bad} does not belong to the agent; remove it")

    def _sole_writers(self) -> bool:
        """Whether only the owner of the folder and its group may write to it. Raises `OSError`."""
        if not self.folder.stat().st_mode & stat.S_IWOTH:
            return True
        self._warn_once(
            f"events.spool {self.folder} is writable for everybody, so the owner of a file proves "
            "little: traffic hints of root and SlurmUser in it are ignored; give it a group of "
            "SlurmUser and mode 2770"
        )
        return False

    def _warn_once(self, sentence: str) -> None:
        topic = sentence.partition(" (")[0]
        if topic not in self._warned and len(self._warned) < KEPT:
            self._warned.add(topic)
            log.warning("%s", sentence)


def _is_message(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _nobodies() -> set[int]:
    """Uids to which file servers map users that they do not trust."""
    uids = {65534, 2**32 - 2}
    with suppress(KeyError):
        uids.add(pwd.getpwnam("nobody").pw_uid)
    return uids


def _read(path: Path) -> tuple[bytes, int]:
    """The content of the file and the uid of its owner. Raises `MessageRefused`, `OSError`."""
    # O_NONBLOCK, in case it is a pipe without a writer; O_NOFOLLOW, in case it is a link.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise MessageRefused(
                RefusalReason.GARBAGE, f"{path}: is not a regular file with one link"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise MessageRefused(
                RefusalReason.NOT_ALLOWED, f"{path}: other users than its owner may write to it"
            )
        if status.st_size > LONGEST_PAYLOAD + 1:
            raise MessageRefused(RefusalReason.OVERSIZE, f"{path}: is longer than a message")
        return os.read(file, LONGEST_PAYLOAD + 2), status.st_uid
    finally:
        os.close(file)
