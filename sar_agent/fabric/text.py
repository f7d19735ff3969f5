"""Files as text, however they were captured: gzip, byte-order marks, Windows line ends."""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import suppress
from pathlib import Path

from sar_agent.errors import InputError

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read_text(path: Path) -> str:
    """The file's text with `\\n` line ends.

    Raises `InputError` where it is missing, unreadable, a directory, empty, binary or a damaged
    gzip file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="check the path") from None
    except IsADirectoryError:
        raise InputError("is a directory", file=path, remedy="name a file in it") from None
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be read ({what})", file=path) from error
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"damaged gzip file ({error})", file=path, remedy="copy it again"
            ) from error
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\0" in data:
        raise InputError("is a binary file", file=path, remedy="a text file is wanted")
    text = normal_lines(data.decode(encoding, errors="replace"))
    if not text.strip():
        raise InputError("is empty", file=path, remedy="write it again")
    return text


def source_text(source: str | Path, name: str) -> tuple[str, str]:
    """(text, name for messages) of a file, or of a string with line ends in it."""
    if isinstance(source, str) and "\n" in source:
        return normal_lines(source), name
    return read_text(Path(source)), str(source)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write under another name, then rename: a reader sees the old file or the whole new one.

    Raises `InputError` where the folder or the disk does not take it; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise InputError(
            f"cannot be written ({error.strerror})",
            file=path,
            remedy="check the folder and its free space",
        ) from error


def normal_lines(text: str) -> str:
    """Any mixture of `\\r\\n`, `\\r\\r\\n` (PuTTY) and `\\n` to `\\n`."""
    return text.removeprefix("\ufeff").replace("\r", "") if "\r" in text else text
