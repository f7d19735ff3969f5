"""The folder for sites without munge on their nodes: a message is a file, its owner the speaker.

watchdog's events only make it quick. The folder is also looked at every few seconds, because a
network file system does not announce what other machines rename in.

A file is read only if it is what a client of ours leaves: a plain file with one name, not longer
than a message, that nobody but its owner may write to. What is malformed is moved aside, the last
`KEPT` of it.

An owner proves little in a folder that everybody may write to: whoever has a file of root's in a
folder of his own may rename it in here. There a file of root's or SlurmUser's is worth a look at
the queue, and says nothing of a job's traffic. One of `nobody`, who is root on any machine whose
root a file server squashes, is never taken for one of `events.trusted_users`.
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
BATCH = 1000
"""Files read without a pause."""
MOST_STUCK = 10_000
"""Names remembered of what can neither be read nor moved; past these the folder is not read."""


class Spool(FileSystemEventHandler):
    """Reads `folder` from `start` until `stop`, at least every `pause` seconds."""

    def __init__(self, hearing: Dispatcher, folder: Path, pause: float = 2.0) -> None:
        self.hearing, self.folder, self.pause = hearing, folder, pause
        self.bad = folder / "bad"
        self._touched, self._end = threading.Event(), threading.Event()
        self._stuck: set[str] = set()
        """Files that can neither be read nor moved."""
        self._said: set[str] = set()
        """Warnings that were given: each is, once."""
        self._observer = Observer()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        """Raises `Unavailable` where the folder cannot be read or written."""
        try:
            self._make_bad()
            next(self.folder.iterdir())  # our own is there
            self._sole_writers()
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
            except Exception as error:
                self.hearing.tally.unexpected.caught("spool", error)
                more = False
            if not more:
                self._touched.wait(self.pause)

    def read(self) -> bool:
        """Take what is there; True if there may be more."""
        there: set[str] = set()
        fresh: list[str] = []
        try:
            certain = self._sole_writers()
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name in self._stuck:
                        there.add(entry.name)
                    elif _is_message(entry.name) and len(fresh) <= BATCH:
                        fresh.append(entry.name)
        except OSError as error:
            self.hearing.refuse(
                MessageRefused(
                    RefusalReason.SLOW, f"{self.folder}: cannot be read ({error.strerror})"
                ),
                "spool",
            )
            return False
        self._stuck = there
        if len(there) >= MOST_STUCK:
            self._once(f"{self.folder}: {MOST_STUCK} files can neither be removed nor moved, so it "
                       "is not read; the agent must own the folder")  # fmt: skip
            return False
        for name in fresh[:BATCH]:
            if self._end.is_set():
                return False
            self._one(self.folder / name, certain)
        return len(fresh) > BATCH

    def _one(self, path: Path, certain: bool) -> None:
        try:
            good = self._hear(path, certain)
        except FileNotFoundError:
            return
        except Exception as error:  # the next file is another message
            self.hearing.tally.unexpected.caught("spool", error)
            good = False
        try:
            if good:
                path.unlink()
            else:
                self._aside(path)
        except OSError as error:
            self._stuck.add(path.name)
            self._once(
                f"{self.folder}: files in it can neither be removed nor moved ({error.strerror}), "
                f"{path.name} among them; the agent must own the folder"
            )

    def _hear(self, path: Path, certain: bool) -> bool:
        """False where it is refused. Raises `FileNotFoundError`."""
        try:
            payload, uid = _read(path)
            if uid in self.hearing.trusted and uid in _nobodies():
                raise MessageRefused(
                    RefusalReason.NOT_ALLOWED,
                    f"{path}: its owner is nobody, who may be root of any machine; let SlurmUser "
                    "write to the spool",
                )
        except FileNotFoundError:
            raise
        except MessageRefused as refused:
            self.hearing.refuse(refused, "spool")
            return False
        except OSError as error:
            garbage = MessageRefused(
                RefusalReason.GARBAGE, f"{path}: cannot be read ({error.strerror})"
            )
            self.hearing.refuse(garbage, "spool")
            return False
        return self.hearing.file(payload, uid, certain=certain)

    def _aside(self, path: Path) -> None:
        if stat.S_ISDIR(path.lstat().st_mode):
            # Only its owner may move a folder into another; within ours it can be renamed.
            with suppress(OSError):
                path.rmdir()
                return
            path.rename(path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}"))
            return
        path.replace(self.bad / path.name)
        kept = sorted(self.bad.iterdir(), key=lambda one: one.lstat().st_mtime_ns)
        for old in kept[:-KEPT]:
            with suppress(OSError):
                old.unlink()

    def _make_bad(self) -> None:
        """The folder for what is malformed: ours. What somebody else made by that name goes out of
        the way. Raises `OSError`, `Unavailable`."""
        for _ in range(10):
            with suppress(FileExistsError):
                self.bad.mkdir(mode=0o700)
            about = self.bad.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
                self.bad.chmod(0o700)
                return
            self._once(f"{self.bad}: was made by uid {about.st_uid}; the agent moves it away")
            self.bad.rename(self.folder / f".bad.{secrets.token_hex(4)}")
        raise Unavailable(f"{self.bad} is not the agent's own folder; remove it")

    def _sole_writers(self) -> bool:
        """Whether only the folder's owner and its group may put files there. Raises `OSError`."""
        if not self.folder.stat().st_mode & stat.S_IWOTH:
            return True
        self._once(
            f"events.spool {self.folder} may be written to by everybody, so a file's owner proves "
            "little: traffic that root or SlurmUser tell of is passed over there; give it a group "
            "of SlurmUser's and mode 2770"
        )
        return False

    def _once(self, sentence: str) -> None:
        topic = sentence.partition(" (")[0]
        if topic not in self._said and len(self._said) < KEPT:
            self._said.add(topic)
            log.warning("%s", sentence)


def _is_message(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _nobodies() -> set[int]:
    """Uids that file servers give to who is squashed."""
    found = {65534, 2**32 - 2}
    with suppress(KeyError):
        found.add(pwd.getpwnam("nobody").pw_uid)
    return found


def _read(path: Path) -> tuple[bytes, int]:
    """What it says, and its owner's uid. Raises `MessageRefused`, `OSError`."""
    # Without waiting for a writer, should it be a pipe, and not through a link.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise MessageRefused(RefusalReason.GARBAGE, f"{path}: is no plain file with one name")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise MessageRefused(
                RefusalReason.NOT_ALLOWED, f"{path}: others than its owner may write to it"
            )
        if status.st_size > LONGEST_PAYLOAD + 1:
            raise MessageRefused(RefusalReason.OVERSIZE, f"{path}: longer than a message")
        return os.read(file, LONGEST_PAYLOAD + 2), status.st_uid
    finally:
        os.close(file)
