"""The folder of real inputs, which the project itself does not carry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_root() -> Path:
    """$SAR_DATA, or `../shared/data` beside the repository; it need not be there."""
    return Path(os.environ.get("SAR_DATA") or _BESIDE)


def data_path(name: str) -> Path:
    """`name` among the real inputs; skips if not there."""
    path = data_root() / name
    if not path.exists():
        pytest.skip(f"{name} is not in {data_root()}; set SAR_DATA to the folder of real inputs")
    return path
