"""Reads topology.conf or topology.yaml again after an edit, without a restart.

Edits are found by a fingerprint (inode, size, times) taken at each `changed()`: it detects every
kind of edit, including those that a network file system does not announce. watchdog's events only
wake the caller sooner, through `on_event`. So a watch that is lost for a while delays the reading
by seconds, but no edit is missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from sar_agent.errors import InputError
from sar_agent.slurm.topology import SlurmTopology
from sar_agent.slurm.topology_files import read_topology, topology_in_use

_OF_READERS = {"opened", "closed_no_write"}  # also caused by our own reading


class TopologyWatcher(FileSystemEventHandler):
    """The last good reading of a topology file and its includes.

    `topology` is None until a reading succeeded. `problem` says what is wrong with the present
    file, "" if nothing is; a broken new file leaves `topology` as it was. `on_event()` is called
    from another thread when the files may have changed: set an event there, and call `changed()`
    from your own thread. Events come between `start` and `stop`.
    """

    def __init__(self, path: str | Path, *, on_event: Callable[[], None] = lambda: None) -> None:
        self.path = Path(path).absolute()
        self.topology: SlurmTopology | None = None
        self.problem = ""
        self._on_event = on_event
        # Slurm uses a topology.yaml as soon as it exists.
        self._given = tuple({self.path, self.path.with_name("topology.yaml")})
        self._files: tuple[Path, ...] = self._given
        self._near: set[str] = set()  # paths whose events concern us
        self._seen: object = None
        self._touched = threading.Event()
        self._observer: BaseObserver | None = None  # inotify has few: a single reading needs none
        self.changed()

    def changed(self) -> bool:
        """Read the files again if they were edited. True if `topology` differs from before."""
        touched = self._touched.is_set()
        self._touched.clear()
        if not touched and _fingerprint(self._files) == self._seen:
            return False
        self._watch()
        self._seen = _fingerprint(self._files)  # before reading, so that a later write differs
        before = self.topology
        try:
            topology = read_topology(topology_in_use(self.path))
        except InputError as error:
            self.problem = str(error)
            # The broken file may be a new include: watch it, too, or its repair is missed.
            files = (*self._files, Path(error.file or self.path))
        else:
            self.topology, files = topology, (*topology.files, *self._given)
            rest = len(topology.problems) - 1
            self.problem = "".join(topology.problems[:1]) + (f" (and {rest} more)" * (rest > 0))
        if set(files) != set(self._files):
            # `_seen` does not match the new files, so the next call reads once more.
            self._files = tuple(dict.fromkeys(files))
            self._watch()
        return (before and before.switches) != (self.topology and self.topology.switches)

    def start(self) -> None:
        """Begin to call `on_event`. Where no inotify instance is left, none is called, and
        `changed()` still detects edits."""
        with suppress(OSError):
            self._observer = Observer()
            self._observer.start()
        self._watch()

    def stop(self) -> None:
        """End the watching thread; `changed()` still works."""
        if self._observer and self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog, in its thread."""
        if event.event_type in _OF_READERS or (
            event.is_directory and event.event_type == "modified"
        ):
            return  # any file in a directory modifies it, in /tmp all the time
        if {str(event.src_path), str(event.dest_path)} & self._near:
            self._touched.set()
            self._on_event()

    def _watch(self) -> None:
        """Watch every directory in which an entry matters.

        All watches are replaced each time: inotify watches a directory itself, not its name, and a
        directory that was removed and created again, or is reached by a changed link, is another.
        """
        if not (self._observer and self._observer.is_alive()):
            return
        near = _near(self._files)
        self._near = set(map(str, near))
        self._observer.unschedule_all()
        for directory in {path.parent for path in near}:
            if directory.is_dir():
                # Where no inotify watch is left, the fingerprint still detects edits.
                with suppress(OSError):
                    self._observer.schedule(self, str(directory))


def _fingerprint(files: Iterable[Path]) -> dict[Path, tuple[object, ...] | None]:
    def state(file: Path) -> tuple[object, ...] | None:
        try:
            stat = file.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns

    return {file: state(file) for file in files}


def _near(files: Iterable[Path]) -> set[Path]:
    """Every path at which a change can affect the reading: the files, the directories above them,
    and the same for each symbolic link among these.
    """
    near: set[Path] = set()
    followed: set[Path] = set()
    todo = list(files)
    while todo:
        path = todo.pop()
        if path in followed:
            continue  # a loop of links
        followed.add(path)
        for part in (path, *path.parents):
            near.add(part)
            if part.is_symlink():
                todo.append(part.parent.resolve() / part.readlink() / path.relative_to(part))
    return near
