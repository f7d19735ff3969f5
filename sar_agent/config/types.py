"""Types that several sections of the settings share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

Seconds = Annotated[float, Field(ge=0, le=86400 * 365)]
Deadline = Annotated[float, Field(gt=0, le=3600)]
Word = Annotated[str, Field(min_length=1)]
Command = Annotated[list[Word], Field(min_length=1)]
HTTP_URL = re.compile(r"https?://[^\s/@?#]+(?:/[^\s?#]*)?")
ABSOLUTE = "give an absolute path: a daemon does not start in your folder"


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError(ABSOLUTE)
    return path


def _address(value: str) -> str:
    if value and not (
        (match := re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+):(\d{1,5})", value))
        and 0 < int(match[2]) < 65536
    ):
        raise ValueError('write HOST:PORT, such as 127.0.0.1:9777, or "" for none')
    return value


Absolute = Annotated[Path, AfterValidator(_absolute)]
Address = Annotated[str, AfterValidator(_address)]


class Section(BaseModel, frozen=True, extra="forbid", strict=True):
    """One `[section]`; an unknown key in it is an error."""


def host_port(address: str) -> tuple[str, int]:
    """Host and port of an `Address` that is not empty."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
