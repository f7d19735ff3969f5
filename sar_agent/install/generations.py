"""The last few generations that were installed, kept as routes files for a rollback."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.formats.routes_file import (
    RoutesFile,
    generation_of,
    read_image,
    read_routes_file,
)
from sar_agent.util.owned_files import READABLE, make_folder
from sar_agent.util.text_files import write_bytes


class Generations:
    """`generations/<number>.sar` in a folder."""

    def __init__(self, folder: Path, kept: int = 5) -> None:
        self.folder, self.kept = folder / "generations", kept

    def numbers(self) -> list[int]:
        """Those that are there, oldest first."""
        found = self.folder.glob("*.sar")
        return sorted(int(path.stem) for path in found if path.stem.isdecimal())

    def path(self, generation: int) -> Path:
        """Where it is, or would be."""
        return self.folder / f"{generation}.sar"

    def read(self, generation: int) -> RoutesFile:
        """Raises `InputError` where it is missing or broken."""
        return read_routes_file(self.path(generation))

    def add(self, generation: int, file: Path) -> None:
        """Keep a copy of the routes file `file`, and let the oldest go. Raises `InputError` where
        it holds another generation, or the disk does not take it."""
        image = read_image(file)
        if (found := generation_of(image, file)) != generation:
            raise InputError(f"it holds generation {found}, not {generation}", file=file)
        with suppress(OSError):  # writing says it better
            make_folder(self.folder)
        # First make room: on a full disk the newest is worth more than the oldest.
        for old in self.numbers()[: -self.kept + 1]:
            with suppress(OSError):
                self.path(old).unlink()
        write_bytes(self.path(generation), image, READABLE)
