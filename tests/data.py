"""The real fabrics and job logs, which are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_path(name: str) -> Path:
    """The file `name` of ../shared/data or $SAR_DATA; skips the test where it is in neither."""
    places = [Path(__file__).resolve().parents[2] / "shared" / "data"]
    if "SAR_DATA" in os.environ:
        places.append(Path(os.environ["SAR_DATA"]))
    for place in places:
        if (place / name).exists():
            return place / name
    pytest.skip(f"{name} is neither in ../shared/data nor in $SAR_DATA")
