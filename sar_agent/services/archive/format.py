"""An archive: one line of JSON, then a tar file, packed by gzip.

`tail -n +2 archive | tar tz` lists its files.

The line says how long the rest is, packed and unpacked, and has its checksum: nothing is
unpacked that is longer, or is not what was sent.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_agent.errors import SarError
from sar_agent.services.archive.files import DECISIONS, LARGEST_FILE, MOST_FILES, largest

MAGIC = b"sar-agent archive "
LONGEST_LINE = 4096
"""Bytes of the first line."""
LARGEST = LARGEST_FILE
"""Bytes of an archive, packed or not."""
_GZIP = 31
"""What zlib calls a stream with gzip's header."""
Number = Annotated[int, Field(ge=0, le=2**62)]
"""There is room for numbers above it in 64 bits."""
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ArchiveRefused(SarError):
    """An archive cannot be used; a sentence says why. Nothing was changed."""


class Edition(NamedTuple):
    """Which of two states is newer: that of the higher generation, then of the higher number."""

    generation: int
    number: int


class Header(BaseModel):
    """The first line."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    release: str = Field(max_length=64)
    """Of the agent that made the archive."""
    host: str = Field(default="", max_length=255, pattern=r"^[A-Za-z0-9._-]*$")
    """Its machine's name, for sentences."""
    generation: Number
    """Of `state.json`."""
    edition: Number
    """Counts the changes of the other files within the generation."""
    contents: Digest
    """Of all files but the decisions."""
    decided: float = Field(ge=0, allow_inf_nan=False)
    """Unix seconds of the newest decision; 0 for none."""
    size: int = Field(ge=0, le=LARGEST)
    """Bytes behind this line."""
    unpacked: int = Field(ge=0, le=LARGEST)
    """Bytes of the tar file."""
    sha256: Digest
    """Of what is behind this line."""

    @property
    def order(self) -> Edition:
        """What decides between two archives."""
        return Edition(self.generation, self.edition)

    def line(self) -> bytes:
        """As in the file."""
        return MAGIC + self.model_dump_json().encode() + b"\n"


def read_header(line: bytes, name: str) -> Header:
    """The header in the first line of an archive, which `name` calls. Raises `ArchiveRefused`."""
    if not line.startswith(MAGIC) or not line.endswith(b"\n"):
        raise ArchiveRefused(f"{name} is no archive of sar-agent")
    try:
        return Header.model_validate_json(line.removeprefix(MAGIC))
    except ValidationError as error:
        raise ArchiveRefused(
            f"{name} is an archive of another format ({error.errors()[0]['msg']}); install one "
            "release on both machines"
        ) from error


def digest_of(files: Mapping[str, bytes]) -> str:
    """Equal for equal files, whatever decisions are beside them."""
    total = hashlib.sha256()
    for name in sorted(files.keys() - {DECISIONS}):
        total.update(f"{name}\0{len(files[name])}\0".encode())
        total.update(files[name])
    return total.hexdigest()


def pack(files: Mapping[str, bytes]) -> tuple[bytes, int]:
    """What is behind the header, and its size unpacked. The same files give the same bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return gzip.compress(out.getvalue(), 1, mtime=0), out.tell()


def unpack(header: Header, body: bytes, name: str) -> dict[str, bytes]:
    """The files of an archive, each bounded and of a known name. Raises `ArchiveRefused`."""
    if len(body) != header.size or hashlib.sha256(body).hexdigest() != header.sha256:
        raise ArchiveRefused(f"{name} does not have the checksum that it says: it is damaged")
    reader = zlib.decompressobj(_GZIP)
    try:
        plain = reader.decompress(body, header.unpacked + 1)
        if len(plain) != header.unpacked or not reader.eof:
            raise ArchiveRefused(f"{name} does not have the size that it says")
        files: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
            for member in tar:
                if not member.isreg() or member.name in files or len(files) >= MOST_FILES:
                    raise ArchiveRefused(f"{name} has {member.name[:64]!r}, which is in no archive")
                if member.size > largest(member.name):
                    raise ArchiveRefused(
                        f"{name} has {member.name[:64]!r} of {member.size} bytes, which is in no "
                        "archive"
                    )
                found = tar.extractfile(member)
                files[member.name] = found.read() if found else b""
    except (zlib.error, tarfile.TarError, ValueError, EOFError) as error:
        raise ArchiveRefused(f"{name} cannot be unpacked ({error})") from error
    if digest_of(files) != header.contents:
        raise ArchiveRefused(f"{name} has other files than it says")
    return files
