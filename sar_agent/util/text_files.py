"""Reads files as text (gzip, byte-order marks, Windows line ends), and writes files in one step."""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from sar_agent.errors import InputError
from sar_agent.util.owned_files import set_mode_and_owner, sync_folder
from sar_agent.util.plural import plural

_T = TypeVar("_T")
LARGEST_FILE = 2**30
"""Bytes of a file, unpacked."""
LEFT_SECONDS = 60.0
"""Nobody writes a file for so long; a process of another container is not seen here."""
READ_INSTEAD = "was read instead of"
CHECK_DISK = "check the folder and its free space"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>])")
"""Control sequences of terminals: colours, moves of the cursor, titles of windows."""
_TEMPORARY = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}")
"""Names of files that are being written, with the number of the process."""
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[{\]]|$))")
"""The first line of JSON, as opposed to a terminal's prompt."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read_text(path: Path, *, may_be_empty: bool = False) -> str:
    """The file's text with `\\n` line ends; gzip is undone, and broken bytes are replaced.

    Raises `InputError` where the file is missing, unreadable, a directory, empty, binary, too
    large or a damaged gzip file.
    """
    try:
        with path.open("rb") as file:
            data = _bounded(file, path)
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="check the path") from None
    except IsADirectoryError:
        raise InputError("is a directory", file=path, remedy="name a file in it") from None
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({what})", file=path) from error
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = _bounded(unpacked, path)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"damaged gzip file ({error})", file=path, remedy="copy it again"
            ) from error
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\0" in data:
        raise InputError("is a binary file", file=path, remedy="give a text file")
    text = normal_lines(data.decode(encoding, errors="replace"))
    if not (may_be_empty or text.strip()):
        raise InputError("is empty", file=path, remedy="write it again")
    return text


def _bounded(file: IO[bytes] | gzip.GzipFile, path: Path) -> bytes:
    """The file's bytes, read in pieces: a buffer of `LARGEST_FILE` would slow down small files."""
    data = bytearray()
    while piece := file.read(2**20):
        data += piece
        if len(data) > LARGEST_FILE:
            raise InputError(
                f"has more than {LARGEST_FILE >> 20} MiB", file=path, remedy="check the path"
            )
    return bytes(data)


def first_readable(
    folder: Path, names: Sequence[str], read: Callable[[Path], _T]
) -> tuple[_T, list[str]] | None:
    """What `read` makes of the first of these files in a folder, plain or gzipped, that it can
    read, with a note for each before it. None where there is no such file; the error of the first
    where none can be read."""
    refused: list[tuple[Path, InputError]] = []
    paths = [path for name in names for path in (folder / name, folder / f"{name}.gz")]
    for path in paths:
        if path.exists():
            try:
                found = read(path)
            except InputError as error:
                refused.append((path, error))
                continue
            return found, [
                f"{path.name} {READ_INSTEAD} {other.name}, which cannot be: {error.what}"
                + (f" (line {error.line})" if error.line else "")
                for other, error in refused
            ]
    if refused:
        raise refused[0][1]
    return None


def json_part(text: str) -> str:
    """The JSON of a text, which may follow a few lines of warnings; "" if there is none."""
    text = text.lstrip()
    at = 0
    for line in text.split("\n", 6)[:6]:
        if _JSON.match(line):
            return text[at:]
        if "|" in line:
            break
        at += len(line) + 1
    return ""


def passed_over(bad: Sequence[tuple[int, str]]) -> list[str]:
    """What is said of lines (number, reason) that were passed over: one sentence, or none."""
    if not bad:
        return []
    lines = "1 line was" if len(bad) == 1 else f"{plural(len(bad), 'line was', 'lines were')}"
    line, why = min(bad)
    return [f"{lines} passed over, the first is line {line} ({why})"]


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """`write_bytes` of the text in UTF-8."""
    write_bytes(path, text.encode(), mode)


def write_bytes(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write under another name, then rename: a reader sees the old file or the whole new one, even
    after a power cut. With a `mode` the file belongs to the folder's owner (`owned_files.py`);
    without one the umask decides.

    Raises `InputError` where the folder or the disk refuses the file; nothing is left behind.
    """
    with disk_errors("cannot be written", path, CHECK_DISK):
        _write_and_rename(path, data, mode)


def _write_and_rename(path: Path, data: bytes, mode: int | None) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
            if mode is not None:
                set_mode_and_owner(file.fileno(), path.parent, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path) -> None:
    """Deletes what writers of this folder have left that were killed before they could rename it:
    files of processes that are gone, which nobody has written to for a while."""
    for path in folder.glob(".*"):
        writer = _TEMPORARY.fullmatch(path.name)
        if writer and not Path("/proc", writer[1]).exists():
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > LEFT_SECONDS:
                    path.unlink()


@contextmanager
def disk_errors(what: str, file: Path, remedy: str = "") -> Iterator[None]:
    """Raises an `OSError` of its body, and the `ValueError` for a name with a NUL, as an
    `InputError` that says `what` of the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{what} ({why})", file=file, remedy=remedy) from error


def normal_lines(text: str) -> str:
    """`text` with `\\n` for any mixture of `\\r\\n`, `\\r\\r\\n` (PuTTY), `\\n` and `\\r`, without
    byte-order marks and without the colours and titles that a terminal shows."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\ufeff" in text:
        text = text.replace("\ufeff", "")
    if "\r" in text:
        text = text.replace("\r", "") if "\n" in text else text.replace("\r", "\n")
    return text
