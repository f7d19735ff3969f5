"""Results on disk, so that a long run continues after an interruption.

Each result is a JSON file with its name. If a file is deleted, only that result is measured again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


class StoredResults:
    """A folder of results; without a folder nothing is stored."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def __call__(self, name: str, find: Callable[[], Any]) -> Any:
        """The stored result of that name, or else that of `find`, which must be JSON data."""
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
