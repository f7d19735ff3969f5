"""The last few generations that were installed, kept as routes files for a rollback."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.formats.routes_file import RoutesFile, read_routes_file
from sar_agent.util.owned_files import READABLE, make_folder
from sar_agent.util.text_files import write_bytes


class Generations:
    """`generations/<number>.sar` in a folder."""

    def __init__(self, folder: Path, kept: int = 5) -> None:
        self.folder, self.kept = folder / "generations", kept

    def numbers(self) -> list[int]:
        """Numbers of the kept generations, oldest first."""
        files = self.folder.glob("*.sar")
        return sorted(int(path.stem) for path in files if path.stem.isdecimal())

    def path(self, generation: int) -> Path:
        """The file of a generation, whether or not it is kept."""
        return self.folder / f"{generation}.sar"

    def read(self, generation: int) -> RoutesFile:
        """Raises `InputError` where it is missing or broken."""
        return read_routes_file(self.path(generation))

    def broken(self) -> list[str]:
        """Why kept generations cannot be used, a sentence each."""
        found = []
        for number in self.numbers():
            try:
                self.read(number)
            except InputError as error:
                found.append(str(error))
        return found

    def add(self, generation: int, image: bytes) -> None:
        """Keep `image`, the bytes of a routes file, and delete the oldest. Raises `InputError`
        where the disk does not take it."""
        with suppress(OSError):  # writing reports it better
            make_folder(self.folder)
        # First make room: on a full disk the newest is worth more than the oldest.
        for old in self.numbers()[: -self.kept + 1]:
            with suppress(OSError):
                self.path(old).unlink()
        write_bytes(self.path(generation), image, READABLE)
