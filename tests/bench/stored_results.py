"""Results on disk, so that a long run continues after an interruption.

Each result is a JSON file with its name. If a file is deleted, only that result is measured again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
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
        path = self._path(self.folder, name)
        if not path.exists():
            print(f"… {name}", flush=True)
            found = json.dumps(find(), indent=1)
            self.folder.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".new").write_text(found + "\n")
            path.with_suffix(".new").rename(path)
        return json.loads(path.read_text())

    def day(self, name: str) -> date:
        """The day on which a result was stored; today where nothing is."""
        if self.folder is None or not (path := self._path(self.folder, name)).exists():
            return date.today()
        return date.fromtimestamp(path.stat().st_mtime)

    @staticmethod
    def _path(folder: Path, name: str) -> Path:
        return folder / (re.sub(r"[^\w.-]+", "_", name) + ".json")


def other_day(kept: StoredResults, results: Mapping[str, Iterable[str]]) -> str:
    """A sentence on results, by what they are, that were stored on an earlier day than the facts
    of the machine; empty without any."""
    first = {what: min(map(kept.day, names)) for what, names in results.items()}
    older = [f"{what}{day}" for what, day in first.items() if day < kept.day("machine")]
    return f" Measured on another day: {', '.join(older)}." if older else ""
