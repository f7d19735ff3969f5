"""Where the real inputs lie that the project itself does not carry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_path(name: str) -> Path:
    """`name` in $SAR_DATA or in `../shared/data` beside the repository; skips if not there."""
    root = Path(os.environ.get("SAR_DATA") or _BESIDE)
    path = root / name
    if not path.exists():
        pytest.skip(f"{name} is not in {root}; set SAR_DATA to the folder of real inputs")
    return path
