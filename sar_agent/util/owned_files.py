"""Files and folders whose mode and owner do not depend on who made them.

A umask of 077 (hardened hosts), or a command that was run as root in the agent's folder, must leave
nothing there that the agent cannot read. What root makes in a folder goes to the folder's owner;
nothing is opened by way of a link that this owner could have put there.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o640
"""State: for the agent and its group."""
READABLE = 0o644
"""Routes files, which OpenSM's user reads."""
FOLDER = 0o750
PUBLIC_FOLDER = 0o755


def settle(descriptor: int, folder: Path, mode: int) -> None:
    """Give the open file or folder `descriptor`, which was just made in `folder`, its mode and,
    where root made it, its owner. Raises `OSError`."""
    os.fchmod(descriptor, mode)
    if os.geteuid() == 0:
        theirs = folder.stat()
        if (theirs.st_uid, theirs.st_gid) != (0, 0):
            os.fchown(descriptor, theirs.st_uid, theirs.st_gid)


def open_owned(path: Path, mode: int = PRIVATE) -> int:
    """A descriptor for reading and writing; the file is made where it is not there. Raises
    `OSError`."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(path, flags)
    settle(descriptor, path.parent, mode)
    return descriptor


def make_folder(path: Path, mode: int = FOLDER) -> None:
    """Like `mkdir -p`, for folders that are not there. Raises `OSError`."""
    if path.is_dir():
        return
    make_folder(path.parent, PUBLIC_FOLDER)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if path.is_dir():
            return  # another process was quicker
        raise
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        settle(descriptor, path.parent, mode)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Until a power cut does not undo a rename in it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
