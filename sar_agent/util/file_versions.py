"""Which version of a file, or of the files in a folder, is on disk: to read only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class FileVersion(NamedTuple):
    """Another one after each write or rename."""

    written_at: float
    """Unix seconds; of a folder, the newest of its files."""
    parts: tuple[tuple[str, int, int, int], ...]
    """Name, inode, size, time of the write in ns."""


def version_of(path: Path, names: Sequence[str] = ()) -> FileVersion | None:
    """Of a file, or of those of a folder's files that are called so, plain or gzipped; None where
    there is none."""
    files = [path]
    if names and path.is_dir():
        files = [path / (name + end) for name in names for end in ("", ".gz")]
    parts, written = list[tuple[str, int, int, int]](), 0.0
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            parts.append((file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
            written = max(written, stat.st_mtime)
    return FileVersion(written, tuple(parts)) if parts else None
