"""The sections of `ibdiagnet2.db_csv`, the file in which NVIDIA's tools pass on what they found.

A section is `START_NODES`, a line of column names, rows, `END_NODES`; lines with `#` are comments.
There are some forty sections. Which of them a file has depends on the options of ibdiagnet, and
versions add columns, so columns are found by name, and all else is passed over. Text is in quotes
that ibdiagnet does not escape: `"a "b", c",65` is two fields. Rows that a CSV library has written
(`"a ""b"", c"`) are read, too. A value may be `N/A`, `ERR` or `-1` (the device did not say).

Sources: `csv_parser` and `ibdiag_fabric.h` of NVIDIA's ibutils2 (OpenIB.org BSD licence, 2017 to
2023), which skip a row with another number of fields than the first line; two files of ibdiagnet
2.10 in github.com/gary-minghuili/infiniband-exporter; the column lists of other public readers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sar_agent.util.text_files import passed_over

SEEN = re.compile(r"^START_(?:RUN_INFO|NODES|PORTS|LINKS|PM_INFO)[ \t]*$", re.MULTILINE)
AGAIN = "run ibdiagnet again and copy ibdiagnet2.db_csv when it is done"
_UNKNOWN = ("N/A", "NA", "ERR", "-1")
_OPEN, _CLOSE = re.compile(r'[ \t]*"'), re.compile(r'"[ \t]*,')
_LONGEST = 1 << 16
"""Characters of a line; NVIDIA's own are at most some 2,000."""


class Row(NamedTuple):
    """The wanted fields of a row; a column that the section lacks is an empty string."""

    line: int
    values: list[str]


@dataclass
class Sections:
    """Rows of the wanted sections, and what could not be read."""

    rows: dict[str, list[Row]]
    cut: str = ""
    """The section inside which the file ends."""
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Line and reason of what was passed over."""

    def each(self, section: str, act: Callable[[Row], None]) -> None:
        """`act` on each row; one for which it raises `ValueError` is passed over."""
        for row in self.rows[section]:
            try:
                act(row)
            except ValueError as error:
                self.bad.append((row.line, f"{section}: {error}"))

    def notes(self) -> list[str]:
        """A sentence on what is missing, one on what was passed over."""
        cut = [f"the file ends inside section {self.cut}: it is cut short"] if self.cut else []
        return cut + passed_over(self.bad)


def read_sections(text: str, wanted: Mapping[str, tuple[str, ...]]) -> Sections:
    """The rows of the wanted sections, each with its wanted columns; the first of these are those
    without which a row says nothing, in upper case. Names of columns are compared without case."""
    found = Sections({name: [] for name in wanted})
    places: list[int | None] | None = None
    width = 0
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("START_"):
            if found.cut:
                found.bad.append((number, f"section {found.cut} does not end before {line[:60]}"))
            found.cut, places = line[6:], None
        elif line.startswith("END_") and "," not in line:
            found.cut = ""
        elif found.cut in wanted and len(line) > _LONGEST:
            found.bad.append((number, f"{found.cut}: {len(line)} characters in a line"))
        elif found.cut in wanted:
            fields = _fields(line, width)
            if places is None:
                width = len(fields)
                names = [name.strip().upper() for name in fields]
                columns = wanted[found.cut]
                places = [
                    names.index(name.upper()) if name.upper() in names else None for name in columns
                ]
                for name, place in zip(columns, places, strict=True):
                    if name.isupper() and place is None:
                        found.bad.append((number, f"section {found.cut} has no column {name}"))
            elif len(fields) != width:
                found.bad.append(
                    (number, f"{found.cut}: {len(fields)} fields in a table of {width} columns")
                )
            else:
                values = ["" if place is None else fields[place] for place in places]
                found.rows[found.cut].append(Row(number, values))
    return found


def _fields(line: str, width: int) -> list[str]:
    """The fields of a line; `width` is how many there should be, 0 where that is not known."""
    if '"' not in line:
        return line.split(",")
    fields, at, text = [], 0, line + ","
    closes = [match.span() for match in _CLOSE.finditer(text)][::-1]
    while at < len(text):
        opened = _OPEN.match(text, at)
        while opened and closes and closes[-1][0] < opened.end():
            closes.pop()
        if opened and closes:
            end, after = closes.pop()
            fields.append(text[opened.end() : end].replace('""', '"'))
        else:
            end = text.index(",", at)
            after = end + 1
            fields.append(text[at:end])
        at = after
    if width and len(fields) != width:
        first, *rest = line.rsplit(",", width - 1)  # quotes and commas in the first column, a name
        if (
            len(rest) == width - 1
            and '"' not in "".join(rest)
            and first.startswith('"')
            and first.endswith('"')
        ):
            return [first[1:-1].replace('""', '"'), *rest]
        fields = next(csv.reader([line]), fields)
    return fields


def guid_of(text: str) -> int:
    """A GUID, hexadecimal with or without `0x`. Raises `ValueError`."""
    if not re.fullmatch(r"\s*(?:0[xX])?[0-9a-fA-F]{1,16}\s*", text):
        raise ValueError(f"{text.strip()[:40]!r} is no GUID")
    return int(text, 16)


def number_of(text: str, most: int, least: int = 0) -> int:
    """A number of `least … most`. Raises `ValueError`."""
    digits = text.strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", digits, re.ASCII):
        value = int(digits, 16 if digits[1:2] in ("x", "X") else 10)
        if least <= value <= most:
            return value
    raise ValueError(f"{digits[:40]!r} is no number of {least} … {most}")


def known(text: str) -> str:
    """The value, empty for `N/A` and the like."""
    text = text.strip()
    return "" if text.upper() in _UNKNOWN else text
