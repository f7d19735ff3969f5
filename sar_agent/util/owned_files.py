"""Files and folders whose mode and owner do not depend on the user who creates them.

A umask of 077 (hardened hosts), or a command that is run as root in the agent's folder, must leave
no file there that the agent cannot read. Files that root creates in a folder are given to the
folder's owner; no file is opened through a symbolic link that this owner could have put there.
"""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o640
"""The mode of state files: for the agent and its group."""
READABLE = 0o644
"""The mode of routes files, which OpenSM's user reads."""
FOLDER = 0o750
PUBLIC_FOLDER = 0o755


def set_mode_and_owner(descriptor: int, folder: Path, mode: int) -> None:
    """Give the open file or folder `descriptor`, which was just created in `folder`, this mode and,
    where root created it, the folder's owner. Raises `OSError`."""
    os.fchmod(descriptor, mode)
    if os.geteuid() == 0:
        owner = folder.stat()
        if (owner.st_uid, owner.st_gid) != (0, 0):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def open_owned(path: Path) -> int:
    """A descriptor for reading and writing; the file is created where it does not exist. Raises
    `OSError`."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        return os.open(path, flags)
    set_mode_and_owner(descriptor, path.parent, PRIVATE)
    return descriptor


def make_folder(path: Path, mode: int = FOLDER) -> None:
    """Create the folder and those above it where they do not exist. Raises `OSError`."""
    if path.is_dir():
        return
    make_folder(path.parent, PUBLIC_FOLDER)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if path.is_dir():
            return  # another process created it first
        raise
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        set_mode_and_owner(descriptor, path.parent, mode)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Flush the folder, so that a power cut does not undo a rename in it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
