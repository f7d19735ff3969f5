"""What the repository's C parts make, made by their own Makefiles."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]


@cache
def built(part: str, target: str) -> Path:
    """`PART/build/TARGET`, up to date."""
    folder = ROOT / part
    subprocess.run(["make", "-s", "-C", str(folder), f"build/{target}"], check=True)
    return folder / "build" / target
