"""Results on disk, so that a long run that was interrupted goes on where it stopped.

A JSON file for each result, by name. Delete the file and only this one is measured again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Kept:
    """Without a folder nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def __call__(self, name: str, find: Callable[[], Any]) -> Any:
        """What was found before under that name, or is now; it must be fit for JSON."""
        if self.folder is None:
            return find()
        path = self.folder / (re.sub(r"[^\w.-]+", "_", name) + ".json")
        if not path.exists():
            print(f"… {name}", flush=True)
            found = json.dumps(find(), indent=1)
            self.folder.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".new").write_text(found + "\n")
            path.with_suffix(".new").rename(path)
        return json.loads(path.read_text())
