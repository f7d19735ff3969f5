"""Damaged files of the state folder are kept under another name, for a person who wants to look."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

MARK = ".broken-"


def set_aside(path: Path, *also: str) -> str:
    """Renames the file, and those whose names are longer by one of `also`; returns its new name.
    Raises `OSError`; a file that is gone is no error."""
    end = f"{MARK}{time.strftime('%Y%m%d-%H%M%S')}"
    for name in (*(f"{path}{more}" for more in also), str(path)):
        with suppress(FileNotFoundError):
            Path(name).rename(f"{name}{end}")
    return f"{path.name}{end}"


def files_set_aside(folder: Path) -> list[str]:
    """Names of such files in a folder, the oldest first."""
    return sorted(path.name for path in folder.glob(f"*{MARK}*"))
