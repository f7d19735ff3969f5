"""topology.conf or topology.yaml, read again when it was edited, without a restart.

Two halves. What counts is a fingerprint (who the file really is, size, times) taken at each
`changed()`: it sees every kind of edit, also one that a network file system never announces.
watchdog's events only wake the caller sooner, through `on_event`. So a watch that is lost for a
while costs seconds, never an edit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from sar_agent.errors import InputError
from sar_agent.slurm.topology import SlurmTopology
from sar_agent.slurm.topology_files import read_topology, topology_in_use

_OF_READERS = {"opened", "closed_no_write"}  # we are one ourselves


class TopologyWatcher(FileSystemEventHandler):
    """The last good reading of a topology file and its includes.

    `topology` is None until a reading succeeded. `problem` is the sentence for what is wrong with
    the file as it is now, "" if nothing is; a broken new file leaves `topology` as it was.
    `on_event()` is called from another thread when something happened to the files: set an event
    there, and ask `changed()` from your own. Use as a context manager, or `start` and `stop`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        strict: bool = False,
        on_event: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = Path(path).absolute()
        self.topology: SlurmTopology | None = None
        self.problem = ""
        self._strict = strict
        self._on_event = on_event
        # Slurm goes by a topology.yaml as soon as there is one.
        self._given = tuple({self.path, self.path.with_name("topology.yaml")})
        self._files: tuple[Path, ...] = self._given
        self._near: set[str] = set()  # paths whose events concern us
        self._seen: object = None
        self._touched = threading.Event()
        self._observer = Observer()
        self.changed()

    def changed(self) -> bool:
        """Read again if there is anything new. True if `topology` is now another than before."""
        touched = self._touched.is_set()
        self._touched.clear()
        if not touched and _fingerprint(self._files) == self._seen:
            return False
        self._watch()
        self._seen = _fingerprint(self._files)  # before reading, so that a later write differs
        before = self.topology
        try:
            topology = read_topology(topology_in_use(self.path), strict=self._strict)
        except InputError as error:
            self.problem = str(error)
            # What broke may be a new include: look at it too, or its mending goes unseen.
            files = (*self._files, Path(error.file or self.path))
        else:
            self.topology, files = topology, (*topology.files, *self._given)
            more = len(topology.problems) - 1
            self.problem = "".join(topology.problems[:1]) + (f" (and {more} more)" * (more > 0))
        if set(files) != set(self._files):
            # `_seen` is of other files now, so the next call reads once more: nothing slips by.
            self._files = tuple(dict.fromkeys(files))
            self._watch()
        return (before and before.switches) != (self.topology and self.topology.switches)

    def start(self) -> None:
        """Begin to call `on_event`. A watcher that was stopped cannot be started again."""
        self._observer.start()
        self._watch()

    def stop(self) -> None:
        """End the watching thread; `changed()` goes on to work."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def __enter__(self) -> TopologyWatcher:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """watchdog's call, in its thread."""
        if event.event_type in _OF_READERS or (
            event.is_directory and event.event_type == "modified"
        ):
            return  # a directory is "modified" by any file in it, /tmp all the time
        if {str(event.src_path), str(event.dest_path)} & self._near:
            self._touched.set()
            self._on_event()

    def _watch(self) -> None:
        """Watch anew every directory in which an entry matters.

        Always anew: inotify watches a directory itself, not its name, and one that was removed
        and made again, or reached by a link that was flipped, is another directory.
        """
        if not self._observer.is_alive():
            return
        near = _near(self._files)
        self._near = set(map(str, near))
        self._observer.unschedule_all()
        for directory in {path.parent for path in near}:
            if directory.is_dir():
                with suppress(OSError):  # out of inotify watches: the fingerprint still sees it
                    self._observer.schedule(self, str(directory))


def _fingerprint(files: Iterable[Path]) -> dict[Path, tuple[object, ...] | None]:
    def one(file: Path) -> tuple[object, ...] | None:
        try:
            stat = file.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns

    return {file: one(file) for file in files}


def _near(files: Iterable[Path]) -> set[Path]:
    """Every path at which a change can change what is read: the files, the directories above
    them, and the same again for each symbolic link among those.
    """
    found: set[Path] = set()
    followed: set[Path] = set()
    todo = list(files)
    while todo:
        path = todo.pop()
        if path in followed:
            continue  # a loop of links
        followed.add(path)
        for one in (path, *path.parents):
            found.add(one)
            if one.is_symlink():
                todo.append(one.parent.resolve() / one.readlink() / path.relative_to(one))
    return found
