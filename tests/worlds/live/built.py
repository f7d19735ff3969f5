"""Programs of the repository's C parts, made by their own Makefiles."""

from __future__ import annotations

import fcntl
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]


@cache
def built(part: str, target: str) -> Path:
    """`PART/build/TARGET`, up to date."""
    folder = ROOT / part
    (folder / "build").mkdir(exist_ok=True)
    with (folder / "build" / ".lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", str(folder), f"build/{target}"], check=True)
    return folder / "build" / target
